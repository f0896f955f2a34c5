// The graph pane: a drawing on a canvas, moved, zoomed and walked through.
import { view } from "./api.js";
import { bytes, button, canvasPane, count, element, facts, fillWithRows, link, listenTo, time } from "./dom.js";
import { palette, TILE, Tiles } from "./tiles.js";

const LOWEST = -2;
const THIN = 0.1;   // of the pane
const HALF = 13;   // the height of a box
const ARROWS = { ArrowUp: "sources", ArrowDown: "users", ArrowLeft: "left", ArrowRight: "right" };

function swatch(colour) {
  const mark = element("span", { className: "bar" });
  mark.style.background = colour;
  mark.style.width = "14px";
  return mark;
}

export class GraphPane {
  // what: the parameters of the view `graph`; go(place) leads to other panes; say(text) to the status line.
  constructor(what, { go, say }) {
    this.what = what;
    this.go = go;
    this.say = say;
    this.group = "";
    this.open = [];
    this.scale = 1;   // pixels of the screen for a unit of the drawing
    this.x = this.y = 0;   // of the drawing, at the pane's corner
    this.chosen = null;
    this.info = null;
    this.pane = canvasPane("canvas-box", "Graph: arrows go to sources, users and neighbours, + and - zoom, Space shows all",
      (context, width, height) => this.draw(context, width, height));
    this.aside = element("aside", { "aria-label": "The chosen node" });
    this.groups = element("select", { "aria-label": "Group nodes by (r)" },
      ...[["", "no groups"], ["line", "groups by line"], ["layer", "groups by layer"], ["kernel", "groups by kernel"]].map(([value, text]) => element("option", { value }, text)));
    this.title = element("span", { className: "quiet" });
    this.head = [this.groups, button("All (Space)", () => this.fit()), this.title];
    this.root = element("div", { className: "fill" }, this.pane.box, this.aside);
    this.groups.addEventListener("change", () => this.regroup(this.groups.value, []));
    this.listen();
    this.load();
  }

  get drawing() { return { ...this.what, group: this.group, open: this.open.join(",") }; }

  regroup(group, open) {
    this.group = this.groups.value = group;
    this.open = open;
    this.chosen = null;
    this.load();
  }

  async load() {
    performance.mark("graph.asked");
    const asked = this.drawing;
    this.tiles?.want([]);
    try {
      const info = await view("drawing", asked);
      if (asked.group !== this.group || asked.open !== this.open.join(",")) return;
      if (!info.nodes && await this.takePass()) return;
      this.tiles = new Tiles(asked, () => this.pane.redraw(), (error) => this.say(error.message));
      const first = !this.info;
      this.info = info;
      this.showInfo();
      if (first || this.untouched || !this.isInView()) this.fit(false);
      this.showChosen();
      this.pane.redraw();
      if (!info.fine) this.waitForFine(this.tiles);
    } catch (error) {
      this.say(error.message);
      this.aside.replaceChildren(element("p", { className: "error", role: "alert" }, error.message));
    }
  }

  // Of a realization that never came to be scheduled, the largest of what was compiled.
  async takePass() {
    const { realization } = this.what;
    if (realization === undefined) return false;
    const { passes } = await view("passes", { realization, count: 1000 }).catch(() => ({ passes: [] }));
    const largest = passes.filter((pass) => pass.kernel === null).reduce((most, pass) => (pass.size_after > (most?.size_after ?? 0) ? pass : most), null);
    if (!largest) return false;
    this.what = { pass: largest.pass, side: "both" };   // as the pass's own pane: one drawing
    this.of = `${largest.name}: `;
    await this.load();
    return true;
  }

  // A large graph is coarse at first.
  async waitForFine(tiles) {
    while (this.tiles === tiles && !this.info.fine && (this.root.isConnected || performance.now() < 5000)) {
      await new Promise((then) => setTimeout(then, 400));
      const info = await view("drawing", tiles.drawing).catch(() => null);
      if (!info || this.tiles !== tiles || !info.fine) continue;
      const middle = this.middle();
      const [sx, sy] = [info.width / this.info.width || 1, info.height / this.info.height || 1];
      this.info = info;
      this.showInfo();
      tiles.refresh();
      this.lookAt(middle.x * sx, middle.y * sy, this.scale);
      if (this.untouched) this.fit(this.whole);
      if (this.chosen) this.choose({ box: this.chosen.box }, false);   // it lies elsewhere now
      performance.mark("graph.fine");
    }
  }

  showInfo() {
    const { nodes, boxes, edges, fine, loops, title } = this.info;
    this.title.textContent = !nodes ? title : (this.of ?? "") + [`${count(nodes)} nodes`, boxes !== nodes ? `${count(boxes)} boxes` : "", `${count(edges)} edges`,
      loops ? `${count(loops)} that go back` : "", fine ? "" : "being laid out"].filter(Boolean).join(", ");
  }

  // ---- where

  size() { return [this.pane.box.clientWidth || 800, this.pane.box.clientHeight || 600]; }

  middle() {
    const [w, h] = this.size();
    return { x: this.x + w / 2 / this.scale, y: this.y + h / 2 / this.scale };
  }

  lookAt(x, y, scale) {
    const [w, h] = this.size();
    this.scale = Math.min(Math.max(scale, 2 ** -30), 4);
    this.x = x - w / 2 / this.scale;
    this.y = y - h / 2 / this.scale;
    this.pane.redraw();
  }

  // All of it; else, where that would be a thin strip, so much of its middle as is as high or wide as the pane.
  fit(whole = true) {
    if (!this.info) return;
    const [w, h] = this.size();
    const { width, height } = this.info;
    const [across, down] = [w / (width + 40), h / (height + 40)];
    const all = Math.min(across, down, 1);
    const isStrip = Math.min(width * all / w, height * all / h) < THIN;
    this.lookAt(width / 2, height / 2, whole || !isStrip ? all : Math.min(Math.max(across, down), 1));
    this.untouched = true;
    this.whole = whole;
  }

  isInView() {
    const [w, h] = this.size();
    return this.x < this.info.width && this.y < this.info.height && this.x + w / this.scale > 0 && this.y + h / this.scale > 0;
  }

  zoom(factor, px, py) {
    const x = this.x + px / this.scale, y = this.y + py / this.scale;
    this.scale = Math.min(Math.max(this.scale * factor, 2 ** -30), 4);
    this.x = x - px / this.scale;
    this.y = y - py / this.scale;
    this.untouched = false;
    this.pane.redraw();
  }

  // ---- drawing

  level() { return Math.max(LOWEST, Math.floor(-Math.log2(this.scale) + 0.3)); }

  visible(level, width, height) {
    const side = TILE * 2 ** level;
    const [x0, y0] = [Math.floor(Math.max(this.x, 0) / side), Math.floor(Math.max(this.y, 0) / side)];
    const x1 = Math.floor(Math.min(this.x + width / this.scale, this.info.width) / side);
    const y1 = Math.floor(Math.min(this.y + height / this.scale, this.info.height) / side);
    const all = [];
    for (let y = y0; y <= y1; y += 1) for (let x = x0; x <= x1; x += 1) all.push([level, x, y]);
    const [cx, cy] = [(x0 + x1) / 2, (y0 + y1) / 2];
    return all.sort((a, b) => Math.hypot(a[1] - cx, a[2] - cy) - Math.hypot(b[1] - cx, b[2] - cy));
  }

  // Some of the drawing stays in view.
  keepInView(width, height) {
    const most = (at, size, pane) => Math.min(Math.max(at, 60 / this.scale - pane / this.scale), Math.max(size - 60 / this.scale, -60 / this.scale));
    this.x = most(this.x, this.info.width, width);
    this.y = most(this.y, this.info.height, height);
  }

  draw(context, width, height) {
    context.fillStyle = palette().ground;
    context.fillRect(0, 0, width, height);
    if (!this.info) return;
    this.keepInView(width, height);
    const level = this.level();
    const tiles = this.visible(level, width, height);
    let missing = 0;
    for (const id of tiles) missing += this.drawTile(context, ...id) ? 0 : 1;
    this.tiles.want(tiles);
    this.drawBack(context);
    this.drawChosen(context);
    if (missing === 0 && !this.painted) {
      this.painted = true;
      performance.mark("graph.painted");
    }
  }

  // Where a tile is not there yet, part of a coarser one.
  drawTile(context, level, x, y) {
    const side = TILE * 2 ** level * this.scale;
    const [px, py] = [(x * TILE * 2 ** level - this.x) * this.scale, (y * TILE * 2 ** level - this.y) * this.scale];
    const tile = this.tiles.get(level, x, y);
    if (tile) {
      context.drawImage(tile.bitmap, px, py, side, side);
      return true;
    }
    for (let up = 1; up < 8; up += 1) {
      const coarse = this.tiles.get(level + up, x >> up, y >> up);
      if (!coarse) continue;
      const part = coarse.bitmap.width / 2 ** up;
      context.drawImage(coarse.bitmap, (x - (x >> up << up)) * part, (y - (y >> up << up)) * part, part, part, px, py, side, side);
      break;
    }
    return false;
  }

  // Edges that go back, as loops' do, beside what they skip.
  drawBack(context) {
    if (this.level() > 1) return;
    context.strokeStyle = context.fillStyle = palette().accent;
    context.lineWidth = Math.max(this.scale * 1.5, 0.7);
    const place = (x, y) => [(x - this.x) * this.scale, (y - this.y) * this.scale];
    for (const [fromX, fromY, fromHalf, toX, toY, toHalf] of this.info.back) {
      const [x0, y0] = place(fromX + fromHalf, fromY + 4), [x1, y1] = place(toX + toHalf, toY - 4);
      const out = Math.max(x0, x1) + (24 + Math.abs(fromY - toY) * 0.6) * this.scale;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(out, y0, out, y1, x1, y1);
      context.stroke();
      const head = 6 * this.scale;
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 + head, y1 - head / 2);
      context.lineTo(x1 + head, y1 + head / 2);
      context.fill();
    }
  }

  drawChosen(context) {
    if (!this.chosen) return;
    const { x, y, width, height, sources, users } = this.chosen;
    const { accent, changed } = palette();
    this.drawRoutes(context, sources, accent);
    this.drawRoutes(context, users, changed);
    context.strokeStyle = accent;
    context.lineWidth = 3;
    const [w, h] = [Math.max(width * this.scale, 6) + 6, Math.max(height * this.scale, 6) + 6];
    context.strokeRect((x - this.x) * this.scale - w / 2, (y - this.y) * this.scale - h / 2, w, h);
  }

  // The edges of the chosen node, each from below its source to above its user.
  drawRoutes(context, ends, stroke) {
    context.strokeStyle = stroke;
    context.lineWidth = 2;
    context.beginPath();
    for (const { route } of ends)
      for (let i = 0; i < route.length; i += 2) {
        const inset = i === 0 ? HALF : i + 2 === route.length ? -HALF : 0;
        const [px, py] = [(route[i] - this.x) * this.scale, (route[i + 1] + inset - this.y) * this.scale];
        if (i === 0) context.moveTo(px, py);
        else context.lineTo(px, py);
      }
    context.stroke();
  }

  // ---- boxes

  hit(px, py) {
    const level = this.level(), side = TILE * 2 ** level;
    const [x, y] = [this.x + px / this.scale, this.y + py / this.scale];
    const [tx, ty] = [Math.floor(x / side), Math.floor(y / side)];
    const tile = this.tiles?.get(level, tx, ty);
    if (!tile || level > 3) return null;
    const [lx, ly] = [(x / 2 ** level - tx * TILE) * 10, (y / 2 ** level - ty * TILE) * 10];
    const { boxes } = tile.data;
    for (let i = 0; i < boxes.length; i += 7)
      if (Math.abs(boxes[i + 1] - lx) <= boxes[i + 3] / 2 && Math.abs(boxes[i + 2] - ly) <= boxes[i + 4] / 2) return boxes[i];
    return null;
  }

  // What lies deep in a large graph has its texts only a little later.
  async choose(parameters, move = true) {
    try {
      const { drawing } = this;
      const box = await view("box", { ...drawing, ...parameters, without_waiting: 1 });
      this.showBox(box, move);
      if (box.complete) return;
      const whole = await view("box", { ...drawing, box: box.box });
      if (this.chosen === box) this.showBox(whole, false);
    } catch (error) {
      this.say(error.message);
    }
  }

  showBox(box, move) {
    this.chosen = box;
    this.showChosen();
    const [w, h] = this.size();
    const [px, py] = [(box.x - this.x) * this.scale, (box.y - this.y) * this.scale];
    const far = px < 40 || py < 40 || px > w - 40 || py > h - 40 || this.scale < 0.2;
    if (move && far) this.lookAt(box.x, box.y, Math.max(this.scale, 0.7));
    this.untouched = false;
    this.pane.redraw();
    this.say(`${box.label}${box.mark ? `, ${box.mark}` : ""}; ${box.sources.length} sources, ${box.users.length} users${box.line ? `; ${box.line}` : ""}`);
  }

  showChosen() {
    const box = this.chosen;
    if (!box) {
      this.aside.replaceChildren(element("p", { className: "quiet" }, "Choose a node by a click or the arrow keys. Drag or Shift+arrows move, the wheel or + and - zoom."), this.legend());
      return;
    }
    const { accent, changed } = palette();
    const items = (all, make) => {   // a constant may have hundreds of users
      const list = element("ul");
      fillWithRows(list, all.length, (i) => element("li", {}, make(all[i])));
      return list;
    };
    const list = (name, all, of) => (all.length ? [element("h2", {}, swatch(of), ` ${name} (${all.length})`),
      items(all, (other) => link(other.label, () => this.choose({ box: other.box })))] : []);
    const isGroup = box.group !== null;
    const toggles = [];
    if (isGroup) toggles.push(button("Expand (Enter)", () => this.expand()));
    if (this.open.length) toggles.push(button("Collapse all groups", () => this.regroup(this.group, [])));
    if (this.what.kernel !== undefined) toggles.push(button("Code (Enter)", () => this.expand()));
    if (box.kernel >= 0) toggles.push(button("Kernel (Enter)", () => this.go({ view: "kernel", kernel: box.kernel })));
    this.aside.replaceChildren(element("h1", {}, box.label),
      facts([["line", box.line], ["layer", box.layer], ["dtype", box.dtype], ["shape", box.shape], ["mark", box.mark], ["bytes", box.bytes > 0 ? bytes(box.bytes) : ""],
        ["time", box.ns > 0 ? time(box.ns) : ""], ["nodes", isGroup ? count(box.nodes) : ""]]),
      element("div", {}, ...toggles), ...(box.text ? [element("pre", { className: "code" }, box.text)] : []),
      ...list("Sources", box.sources, accent), ...list("Users", box.users, changed),
      ...(isGroup ? [element("h2", {}, "Nodes"), items(box.members, (m) => m.label)] : []));
  }

  legend() {
    const colours = palette();
    const rows = (this.info?.kinds ?? []).slice(0, 40).map((kind, i) => element("li", {}, swatch(colours.box(i)), ` ${kind}`));
    return element("ul", { "aria-label": "Colours" }, ...rows);
  }

  expand() {
    const { chosen } = this;
    if (!chosen) return;
    if (chosen.group !== null && chosen.group !== undefined) {
      const node = chosen.members[0].node;
      this.open = [...this.open, chosen.group];
      this.chosen = null;
      this.load().then(() => this.choose({ node }));
    } else if (this.what.kernel !== undefined) this.go({ view: "kernel", kernel: this.what.kernel, block: chosen.members[0].node });
    else if (chosen.kernel >= 0) this.go({ view: "kernel", kernel: chosen.kernel });
  }

  step(direction) {
    const { chosen } = this;
    if (!chosen) return this.info?.boxes ? this.choose({ box: 0 }) : undefined;
    const next = direction === "left" || direction === "right" ? chosen[direction] : chosen[direction][0]?.box;
    if (next !== undefined) this.choose({ box: next });
    return undefined;
  }

  // ---- keys and pointers

  key(event) {
    const [w, h] = this.size();
    if (event.key in ARROWS && event.shiftKey) {
      const by = 80 / this.scale;
      this.x += { ArrowLeft: -by, ArrowRight: by }[event.key] ?? 0;
      this.y += { ArrowUp: -by, ArrowDown: by }[event.key] ?? 0;
      this.untouched = false;
      this.pane.redraw();
    } else if (event.key in ARROWS) this.step(ARROWS[event.key]);
    else if (event.key === "Enter") this.expand();
    else if (event.key === "+" || event.key === "=") this.zoom(1.4, w / 2, h / 2);
    else if (event.key === "-") this.zoom(1 / 1.4, w / 2, h / 2);
    else return false;
    return true;
  }

  // Keys that work wherever the focus is.
  globalKey(key) {
    if (key === " ") this.fit();
    else if (key === "c" && this.what.kernel !== undefined) this.go({ view: "kernel", kernel: this.what.kernel });
    else if (key === "r") {
      const order = ["", "line", "layer", "kernel"];
      this.regroup(order[(order.indexOf(this.group) + 1) % order.length], []);
    } else return false;
    return true;
  }

  listen() {
    const { canvas } = this.pane;
    listenTo(canvas, {
      key: (event) => this.key(event),
      drag: (dx, dy) => {
        this.x -= dx / this.scale;
        this.y -= dy / this.scale;
        this.untouched = false;
        this.pane.redraw();
      },
      click: (event) => this.click(event.offsetX, event.offsetY),
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 300), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.expand());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.tiles?.repaint());
  }

  click(px, py) {
    const box = this.hit(px, py);
    if (box !== null) this.choose({ box }, false);
    else if (this.level() > 3) this.zoom(4, px, py);
  }
}
