// The timeline pane: spans of all tracks, and below the memory of a realization.
import { view } from "./api.js";
import { button, bytes, canvasPane, colour, element, facts, hashOf, hue, link, listenTo, time } from "./dom.js";

const ROW = 18;
const HEAD = 16;
const AXIS = 22;

function ticks(begin, end, most) {
  const least = Math.max((end - begin) / most, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find((m) => m * power >= least) * power;
  const all = [];
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) all.push(at);
  return all;
}

export class TimelinePane {
  constructor({ go, say, session, realization }) {
    this.go = go;
    this.say = say;
    this.begin = session.begin;
    this.end = Math.max(session.end, session.begin + 1000);
    this.whole = [this.begin, this.end];
    this.spans = [];
    this.top = 0;
    this.chosen = null;
    this.pane = canvasPane("canvas-box", "Timeline: arrows go from span to span, + and - zoom, Space shows all, Enter opens the kernel",
      (context, width, height) => this.draw(context, width, height));
    this.memory = new MemoryPane({ go, say });
    this.aside = element("aside", { "aria-label": "The chosen span" }, element("p", { className: "quiet" }, "Choose a span by a click or the arrow keys. Drag moves, the wheel or + and - zoom, Shift+wheel moves up and down."));
    this.range = element("span", { className: "quiet" });
    this.head = [button("All (Space)", () => this.fit()), button("First to compare ([)", () => this.markStretch("[")),
      button("Second (])", () => this.markStretch("]")), this.range];
    this.root = element("div", { className: "fill" }, element("div", { className: "column" }, this.pane.box, this.memory.root), this.aside);
    this.listen();
    this.ask();
    this.memory.show(realization);
  }

  // Half a screen more on both sides, so that moving a little needs no answer.
  async ask() {
    const width = this.end - this.begin;
    const begin = Math.max(0, Math.floor(this.begin - width / 2)), end = Math.ceil(this.end + width / 2);
    const resolution = Math.floor(width / Math.max(this.pane.box.clientWidth, 400));
    this.controller?.abort();
    this.controller = new AbortController();
    try {
      const answer = await view("timeline", { begin, end, resolution }, this.controller.signal);
      this.asked = { begin, end, width };
      this.tracks = answer.tracks;
      this.layOut();
      this.pane.redraw();
      performance.mark("timeline.painted");
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  layOut() {
    let y = 0;
    this.spans = [];
    for (const track of this.tracks) {
      track.y = y;
      const depth = track.spans.reduce((most, span) => Math.max(most, span.depth), 0) + 1;
      for (const span of track.spans) this.spans.push({ ...span, track, y: y + HEAD + span.depth * ROW, hue: hue(hashOf(span.kernel !== null ? `kernel ${span.kernel}` : span.name) % 97) });
      y += HEAD + depth * ROW + 6;
    }
    this.height = y;
  }

  later() {
    clearTimeout(this.timer);
    const { asked } = this;
    const width = this.end - this.begin;
    const near = asked && this.begin >= asked.begin && this.end <= asked.end && width > asked.width / 2 && width < asked.width * 1.5;
    if (!near) this.timer = setTimeout(() => this.ask(), 30);
    this.pane.redraw();
  }

  fit() {
    [this.begin, this.end] = this.whole;
    this.later();
  }

  zoom(factor, part) {
    const width = this.end - this.begin;
    const made = Math.min(Math.max(width / factor, 100), (this.whole[1] - this.whole[0]) * 2);
    this.begin += (width - made) * part;
    this.end = this.begin + made;
    this.later();
  }

  // Where the chosen span lies in what is seen, so that it stays there.
  partOfChosen() {
    const part = this.chosen ? (this.chosen.start + this.chosen.ns / 2 - this.begin) / (this.end - this.begin) : 0.5;
    return part >= 0 && part <= 1 ? part : 0.5;
  }

  move(by) {
    this.begin += by;
    this.end += by;
    this.later();
  }

  x(at, width) { return (at - this.begin) / (this.end - this.begin) * width; }

  draw(context, width, height) {
    const text = colour("text"), quiet = colour("quiet"), line = colour("line"), light = colour("bar-light");
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    this.range.textContent = `${time(this.end - this.begin)} from ${time(this.begin)}`;
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height);
    context.clip();
    for (const track of this.tracks ?? []) {
      context.fillStyle = quiet;
      context.fillText(`${track.name} (process ${track.process})`, 6, track.y + AXIS - this.top + HEAD / 2);
    }
    for (const span of this.spans) {
      const y = span.y + AXIS - this.top;
      if (y < AXIS - ROW || y > height) continue;
      const x0 = Math.max(this.x(span.start, width), -1), x1 = Math.min(this.x(span.start + span.ns, width), width + 1);
      if (x1 < 0 || x0 > width) continue;
      const w = Math.max(x1 - x0, 0.8);
      const name = span.detail || span.name;
      context.fillStyle = `hsl(${span.hue} 50% ${light})`;
      context.globalAlpha = span.merged > 1 ? 0.55 : 1;
      context.fillRect(x0, y, w, ROW - 2);
      context.globalAlpha = 1;
      if (span.start === this.chosen?.start && span.y === this.chosen.y) {
        context.strokeStyle = colour("accent");
        context.lineWidth = 2;
        context.strokeRect(x0, y, w, ROW - 2);
      }
      if (w < 30) continue;
      context.fillStyle = text;
      const most = Math.floor((w - 6) / 6);
      const label = span.merged > 1 ? `${span.merged} spans` : name;
      context.fillText(label.length <= most ? label : `${label.slice(0, most - 1)}…`, x0 + 3, y + ROW / 2 - 1);
    }
    context.restore();
    context.fillStyle = quiet;
    context.strokeStyle = line;
    for (const at of ticks(this.begin, this.end, width / 90)) {
      const x = Math.round(this.x(at, width)) + 0.5;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, AXIS);
      context.stroke();
      context.fillText(time(at), x + 3, AXIS / 2);
    }
  }

  // What is seen is one of two stretches of time; with both of them they are compared.
  markStretch(key) {
    const stretch = { begin: Math.max(0, Math.floor(this.begin)), end: Math.max(0, Math.ceil(this.end)) };
    this.stretches = { ...this.stretches, [key]: stretch };
    const { "[": one, "]": other } = this.stretches;
    if (one && other) return this.go({ view: "compare", ...one, other_begin: other.begin, other_end: other.end });
    return this.say(`${time(stretch.end - stretch.begin)} from ${time(stretch.begin)}: the ${key === "[" ? "first" : "second"} to compare; mark the other with ${key === "[" ? "]" : "["}`);
  }

  choose(span) {
    if (!span) return;
    this.chosen = span;
    const width = this.end - this.begin;
    if (span.start < this.begin || span.start > this.end) this.move(span.start + span.ns / 2 - this.begin - width / 2);
    const visible = this.pane.box.clientHeight - AXIS - ROW;
    if (span.y < this.top || span.y > this.top + visible) this.top = Math.max(0, span.y - visible / 2);
    const open = (name, place) => link(name, () => this.go(place));
    this.aside.replaceChildren(element("h1", {}, span.detail || span.name),
      facts([["what", span.name], ["start", time(span.start)], ["length", time(span.ns)], ["amount", span.amount ? bytes(span.amount) : ""],
        ["track", span.track.name], ["spans", span.merged > 1 ? `${span.merged}, each too short to be seen` : ""],
        ["kernel", span.kernel !== null && span.kernel !== undefined ? open(`kernel ${span.kernel}`, { view: "kernel", kernel: span.kernel }) : ""],
        ["pass", span.pass !== null && span.pass !== undefined ? open(`pass ${span.pass}`, { view: "pass", pass: span.pass }) : ""],
        ["realization", span.realization !== null && span.realization !== undefined ? link(`realization ${span.realization}: memory`, () => this.memory.show(span.realization)) : ""],
        ["compare", span.realization > 0 ? open("with the realization before", { view: "compare", realization: span.realization - 1, other: span.realization }) : ""]]));
    this.say(`${span.name} ${span.detail}, ${time(span.ns)}`);
    this.pane.redraw();
  }

  step(key) {
    if (!this.chosen) return this.choose(this.spans.find((s) => s.start + s.ns >= this.begin));
    const { chosen } = this;
    const row = this.spans.filter((s) => s.y === chosen.y);
    if (key === "ArrowRight") return this.choose(row.find((s) => s.start > chosen.start));
    if (key === "ArrowLeft") return this.choose(row.filter((s) => s.start < chosen.start).pop());
    const rows = this.spans.filter((s) => (key === "ArrowDown" ? s.y > chosen.y : s.y < chosen.y));
    if (!rows.length) return undefined;
    const y = rows.reduce((best, s) => (key === "ArrowDown" ? Math.min(best, s.y) : Math.max(best, s.y)), rows[0].y);
    const middle = chosen.start + chosen.ns / 2;
    const far = (s) => Math.abs(s.start + s.ns / 2 - middle);
    return this.choose(rows.filter((s) => s.y === y).reduce((best, s) => (far(s) < far(best) ? s : best)));
  }

  key(event) {
    if (event.key.startsWith("Arrow") && event.shiftKey) this.move((this.end - this.begin) * ({ ArrowLeft: -0.2, ArrowRight: 0.2 }[event.key] ?? 0));
    else if (event.key.startsWith("Arrow")) this.step(event.key);
    else if (event.key === "+" || event.key === "=") this.zoom(1.6, this.partOfChosen());
    else if (event.key === "-") this.zoom(1 / 1.6, this.partOfChosen());
    else if (event.key === "Enter" && (this.chosen?.kernel ?? null) !== null) this.go({ view: "kernel", kernel: this.chosen.kernel });
    else return false;
    return true;
  }

  globalKey(key) {
    if (key === "[" || key === "]") this.markStretch(key);
    else if (key === " ") this.fit();
    else return false;
    return true;
  }

  listen() {
    const { canvas } = this.pane;
    const part = (event) => event.offsetX / Math.max(canvas.clientWidth, 1);
    const scroll = (by) => { this.top = Math.min(Math.max(0, this.top + by), Math.max(0, this.height - 60)); };
    listenTo(canvas, {
      key: (event) => this.key(event),
      drag: (dx, dy) => {
        scroll(-dy);
        this.move(-dx / canvas.clientWidth * (this.end - this.begin));
      },
      click: (event) => this.choose(this.hit(event)),
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) scroll(event.deltaY);
      else this.zoom(2 ** (-event.deltaY / 300), part(event));
      this.pane.redraw();
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      const span = this.hit(event);
      if ((span?.kernel ?? null) !== null) this.go({ view: "kernel", kernel: span.kernel });
    });
  }

  hit(event) {
    const y = event.offsetY - AXIS + this.top;
    const width = this.pane.canvas.clientWidth;
    return this.spans.find((s) => y >= s.y && y < s.y + ROW && this.x(s.start, width) - 1 <= event.offsetX
      && event.offsetX <= Math.max(this.x(s.start + s.ns, width), this.x(s.start, width) + 2) + 1);
  }
}

// Buffers over the steps of a realization: each from its first step to its last, at its place.
class MemoryPane {
  constructor({ go, say }) {
    this.go = go;
    this.say = say;
    this.pane = canvasPane("canvas-box", "Memory of a realization by step: click a buffer", (context, width, height) => this.draw(context, width, height));
    this.root = element("div", { className: "memory-box fill" }, this.pane.box);
    this.root.hidden = true;
    this.pane.canvas.addEventListener("pointerup", (event) => this.click(event));
  }

  async show(realization) {
    if (realization === undefined || realization === null) return;
    try {
      this.data = await view("memory", { realization });
    } catch (error) {
      this.say(error.message);
      return;
    }
    this.root.hidden = this.data.buffers.length === 0;
    this.layOut();
    this.pane.redraw();
  }

  // Arenas one above the other by offset; what lies in none is stacked behind them in rows of its own.
  layOut() {
    const { arenas, buffers } = this.data;
    let end = 0;
    const bases = arenas.map((arena) => {
      const base = end;
      end += arena.bytes;
      return base;
    });
    this.boxes = buffers.map((buffer) => {
      const own = buffer.arena === null || buffer.arena === undefined || buffer.arena < 0;
      const at = own ? end : bases[buffer.arena] + buffer.offset;
      if (own) end += buffer.bytes;
      return { buffer, at };
    });
    this.bytes = Math.max(end, 1);
  }

  place({ buffer, at }, width, height) {
    const steps = Math.max(this.data.steps, 1);
    const last = buffer.last ?? steps - 1, first = buffer.first ?? 0;
    const x = first / steps * width, y = height - (at + buffer.bytes) / this.bytes * (height - 18);
    return [x, y, Math.max((last - first + 1) / steps * width, 1), Math.max(buffer.bytes / this.bytes * (height - 18), 0.7)];
  }

  draw(context, width, height) {
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, width, height);
    if (!this.data) return;
    const light = colour("bar-light");
    const held = new Set(this.data.peak?.buffers ?? []);
    for (const box of this.boxes) {
      const [x, y, w, h] = this.place(box, width, height);
      context.fillStyle = `hsl(${hue(box.buffer.buffer)} 45% ${light})`;
      context.globalAlpha = held.has(box.buffer.buffer) ? 1 : 0.6;
      context.fillRect(x, y, w, h);
    }
    context.globalAlpha = 1;
    const { peak, steps } = this.data;
    if (peak) {
      context.strokeStyle = colour("removed");
      context.beginPath();
      context.moveTo((peak.step + 0.5) / Math.max(steps, 1) * width, 18);
      context.lineTo((peak.step + 0.5) / Math.max(steps, 1) * width, height);
      context.stroke();
    }
    context.fillStyle = colour("text");
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillText(`memory of realization ${this.data.realization}: ${steps} steps${peak ? `, peak ${bytes(peak.bytes)} at step ${peak.step}` : ""}; in full colour what is held there`, 6, 9);
  }

  click(event) {
    const [width, height] = [this.pane.canvas.clientWidth, this.pane.canvas.clientHeight];
    const found = this.boxes?.find((box) => {
      const [x, y, w, h] = this.place(box, width, height);
      return event.offsetX >= x && event.offsetX <= x + w && event.offsetY >= y - 1 && event.offsetY <= y + h + 1;
    });
    if (!found) return;
    const { buffer } = found;
    this.say(`buffer ${buffer.buffer}: ${buffer.dtype}, ${bytes(buffer.bytes)}, ${buffer.kind}, steps ${buffer.first} to ${buffer.last}; ${buffer.line}`);
    if (event.detail > 1 && (buffer.made_by ?? null) !== null) this.go({ view: "kernel", kernel: buffer.made_by });
  }
}
