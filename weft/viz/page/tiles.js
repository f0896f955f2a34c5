// Tiles of a drawing: fetched, painted once into a bitmap, kept while they are looked at.
import { view } from "./api.js";
import { colour, hue } from "./dom.js";

export const TILE = 512;
const MOST_KEPT = 120;
const MOST_ASKED = 6;
const TINTS = 13;   // colours of lines
export const MARKS = ["", "", "added", "removed", "changed"];

export function palette() {
  const light = colour("box-light"), strength = colour("box-colour"), edge = colour("edge-light");
  return {
    box: (kind) => `hsl(${hue(kind)} ${strength} ${light})`,
    lines: (source) => `hsl(${hue(source % TINTS)} 45% ${edge})`,
    text: colour("text"), edge: colour("edge"), line: colour("quiet"), accent: colour("accent"), changed: colour("changed"), ground: colour("ground"),
    marks: ["", "", colour("added"), colour("removed"), colour("changed")],
  };
}

// Lines of one box have one colour: side by side with others they can be told apart.
function paintLines(context, lines, colours, level) {
  context.lineWidth = 1;
  for (const cut of [0, 1]) {
    context.setLineDash(cut ? [3, 3] : []);
    context.globalAlpha = cut || level > 1 ? 0.45 : 0.85;   // many of small boxes lie side by side
    const paths = Array.from({ length: TINTS }, () => new Path2D());
    for (let i = 0; i < lines.length; i += 6) {
      if (lines[i + 4] !== cut) continue;
      const path = paths[lines[i + 5] % TINTS];
      path.moveTo(lines[i] / 10, lines[i + 1] / 10);
      path.lineTo(lines[i + 2] / 10, lines[i + 3] / 10);
    }
    paths.forEach((path, tint) => {
      context.strokeStyle = colours.lines(tint);
      context.stroke(path);
    });
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function paintBoxes(context, tile, colours, level) {
  const unit = 2 ** -level;
  context.font = `${12 * unit}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const { boxes, labels } = tile;
  for (let i = 0, n = 0; i < boxes.length; i += 7, n += 1) {
    const [, cx, cy, w, h, kind, mark] = boxes.slice(i, i + 7);
    const x = (cx - w / 2) / 10, y = (cy - h / 2) / 10;
    context.fillStyle = colours.box(kind);
    context.fillRect(x, y, w / 10, h / 10);
    context.strokeStyle = mark > 1 ? colours.marks[mark] : colours.edge;
    context.lineWidth = mark > 1 ? Math.max(1.5, 3 * unit) : Math.min(1, unit);
    const inset = context.lineWidth / 2;   // a tile ends where its boxes do
    context.strokeRect(x + inset, y + inset, w / 10 - 2 * inset, h / 10 - 2 * inset);
    if (!labels.length) continue;
    context.fillStyle = colours.text;
    context.fillText(clipped(labels[n], w / 10 / unit), cx / 10, cy / 10 + 0.5, w / 10 - 4 * unit);
  }
}

// About 7 units a character.
function clipped(label, width) {
  const most = Math.max(1, Math.floor((width - 10) / 6.6));
  return label.length <= most ? label : `${label.slice(0, most - 1)}…`;
}

function paintCells(context, cells, colours) {
  for (let i = 0; i < cells.length; i += 7) {
    const x = cells[i] / 10, y = cells[i + 1] / 10;
    const mark = cells[i + 6];
    context.fillStyle = mark > 1 ? colours.marks[mark] : colours.box(cells[i + 5]);
    context.fillRect(x, y, Math.max(cells[i + 2] / 10 - x, 1), Math.max(cells[i + 3] / 10 - y, 1));
  }
}

function paint(tile, level) {
  const ratio = devicePixelRatio;
  const bitmap = document.createElement("canvas");
  bitmap.width = bitmap.height = Math.round(TILE * ratio);
  const context = bitmap.getContext("2d");
  context.scale(ratio, ratio);
  const colours = palette();
  if (level > 3) {
    paintCells(context, tile.cells, colours);
    paintLines(context, tile.lines, colours, level);
  } else {
    paintLines(context, tile.lines, colours, level);
    paintBoxes(context, tile, colours, level);
  }
  return bitmap;
}

export class Tiles {
  // drawing: the parameters of /api/drawing. onTile: something can be drawn that could not be.
  constructor(drawing, onTile, onError) {
    this.drawing = drawing;
    this.onTile = onTile;
    this.onError = onError;
    this.kept = new Map();
    this.asked = new Map();
    this.wanted = [];
    this.version = 0;
  }

  key(level, x, y) { return `${level}/${x}/${y}`; }

  // What is kept stays on the screen until its successor is there.
  refresh() {
    this.version += 1;
    for (const { controller } of this.asked.values()) controller.abort();
    this.asked.clear();
  }

  repaint() {
    for (const tile of this.kept.values()) tile.bitmap = paint(tile.data, tile.level);
  }

  get(level, x, y) {
    const key = this.key(level, x, y);
    const tile = this.kept.get(key);
    if (!tile) return null;
    this.kept.delete(key);   // and last: those used longest ago are first
    this.kept.set(key, tile);
    return tile;
  }

  // Nearest first; those asked for before and no longer wanted are given up.
  want(list) {
    this.wanted = list.filter(([level, x, y]) => this.kept.get(this.key(level, x, y))?.version !== this.version);
    const keys = new Set(this.wanted.map((id) => this.key(...id)));
    for (const [key, { controller }] of this.asked) {
      if (keys.has(key)) continue;
      controller.abort();
      this.asked.delete(key);
    }
    this.ask();
  }

  ask() {
    for (const [level, x, y] of this.wanted) {
      if (this.asked.size >= MOST_ASKED) return;
      const key = this.key(level, x, y);
      if (!this.asked.has(key) && this.kept.get(key)?.version !== this.version) this.fetch(key, level, x, y);
    }
  }

  async fetch(key, level, x, y) {
    const controller = new AbortController();
    const mine = { controller };
    const { version } = this;
    this.asked.set(key, mine);
    try {
      const data = await view("tile", { ...this.drawing, level, x, y }, controller.signal);
      this.kept.delete(key);
      this.kept.set(key, { data, level, version, bitmap: paint(data, level) });
      for (const old of this.kept.keys()) {
        if (this.kept.size <= MOST_KEPT) break;
        this.kept.delete(old);
      }
      this.onTile();
    } catch (error) {
      if (error.name !== "AbortError") this.onError(error);
    }
    if (this.asked.get(key) === mine) this.asked.delete(key);
    this.ask();
  }
}
