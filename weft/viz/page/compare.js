// The pane that compares two realizations, or two stretches of time: lanes with marks, and tables.
import { view } from "./api.js";
import { button, bytes, canvasPane, colour, count, element, hashOf, hue, link, listenTo, table, time } from "./dom.js";

const LANE = 26;
const HEAD = 16;
const MOST_LISTED = 1000;
const NOTABLE = 0.1;   // a kernel whose time differs by less has no mark
const MARKS = { added: "+", gone: "−", same: "" };

const signed = (value, text) => (value === 0 ? "" : `${value < 0 ? "−" : "+"}${text(Math.abs(value))}`);

// What the pane shows where nothing is said: the last realization that ran kernels, and the one before it of the same line.
export function lastTwo(all) {
  const ran = all.filter((r) => r.kernels.length);
  const last = ran.at(-1);
  if (!last) return {};
  const before = ran.slice(0, -1).reverse();
  const one = before.find((r) => r.line === last.line && r.kind === last.kind) ?? before[0] ?? last;
  return { realization: one.realization, other: last.realization };
}

export class ComparePane {
  constructor(place, { go, say }) {
    this.go = go;
    this.say = say;
    this.head = [element("h1", {}, "Compare"), element("span", { className: "quiet" }, "Reading.")];
    this.lanes = new Lanes({ go, say });
    this.body = element("div", { className: "body" });
    this.root = element("div", { className: "fill" }, element("div", { className: "column" }, this.lanes.pane.box, this.body));
    this.lanes.pane.box.classList.add("lanes");
    this.body.style.overflow = "auto";
    this.load(place).catch((error) => {
      say(error.message);
      this.body.replaceChildren(element("p", { className: "error", role: "alert" }, error.message));
    });
  }

  async load(place) {
    const { total } = await view("realizations", { count: 1 });
    const { realizations } = await view("realizations", { first: Math.max(0, total - MOST_LISTED), count: MOST_LISTED });
    const times = place.begin !== undefined || place.other_begin !== undefined;
    const two = times ? {} : { ...lastTwo(realizations), ...(place.other === undefined ? {} : { realization: place.realization, other: place.other }) };
    this.showChoice(realizations, two);
    if (!times && two.other === undefined) throw new Error("nothing ran that could be compared");
    const asked = times ? { begin: place.begin, end: place.end, other_begin: place.other_begin, other_end: place.other_end } : two;
    this.data = await view("compare", { ...asked, count: MOST_LISTED });
    this.show();
    await this.lanes.show(this.data);
    performance.mark("compare.painted");
  }

  showChoice(all, two) {
    const made = (label, chosen) => {
      const select = element("select", { "aria-label": label }, ...all.map((r) => element("option", { value: r.realization },
        `${r.kind} ${r.realization}${r.line ? `: ${r.line}` : ""} (${time(r.ns)})`)));
      if (chosen === undefined) select.prepend(element("option", { value: "" }, "a stretch of time"));
      select.value = String(chosen ?? "");
      return select;
    };
    const one = made("The first of two", two.realization), other = made("The second", two.other);
    const chosen = () => one.value !== "" && other.value !== "" && this.go({ view: "compare", realization: one.value, other: other.value });
    for (const select of [one, other]) select.addEventListener("change", chosen);
    this.onHead?.([one, " and ", other, button("The other way round", () => {
      [one.value, other.value] = [other.value, one.value];
      chosen();
    })]);
    this.head[1].textContent = "";
  }

  show() {
    const { data, go } = this;
    const { one, other } = data;
    const name = (part) => (part.realization === null ? `${time(part.ns)} from ${time(part.begin)}`
      : link(`realization ${part.realization}${part.line ? `: ${part.line}` : ""}`, () => go({ view: "graph", realization: part.realization })));
    const total = (what, key, text) => ({ what, one: text(one[key]), other: text(other[key]), difference: signed(other[key] - one[key], text) });
    const numbers = (text, first, second) => [
      { name: "first", of: (r) => text(r[first]), number: true, sort: (r) => r[first] }, { name: "second", of: (r) => text(r[second]), number: true, sort: (r) => r[second] },
      { name: "difference", of: (r) => signed(r.difference, text), number: true, sort: (r) => Math.abs(r.difference) }];
    const kernelOf = (row) => {
      const kernel = row.kernel ?? row.other_kernel;
      return kernel === null ? row.name : link(row.name, () => go({ view: "kernel", kernel }));
    };
    this.body.replaceChildren(
      table([{ name: "", of: (r) => r.what }, { name: "first", of: (r) => r.one, number: true }, { name: "second", of: (r) => r.other, number: true },
        { name: "difference", of: (r) => r.difference, number: true }],
      [{ what: "", one: name(one), other: name(other), difference: "" }, total("from begin to end", "ns", time), total("compiling", "compile_ns", time),
        total("in kernels", "kernel_ns", time), total("launches", "launches", count), total("memory at the peak", "peak", bytes)], "In all"),
      element("h2", {}, `${count(data.total)} kernels`),
      table([{ name: "", of: (r) => MARKS[r.what] }, { name: "kernel", of: kernelOf, sort: (r) => r.name }, { name: "what", of: (r) => r.what, sort: (r) => r.what },
        { name: "runs", of: (r) => `${count(r.runs)} / ${count(r.other_runs)}`, number: true, sort: (r) => r.other_runs }, ...numbers(time, "ns", "other_ns")],
      data.kernels, "Kernels of both"),
      element("h2", {}, "Spans"),
      table([{ name: "span", of: (r) => r.name, sort: (r) => r.name }, { name: "what", of: (r) => r.what, sort: (r) => r.what },
        { name: "count", of: (r) => `${count(r.count)} / ${count(r.other_count)}`, number: true, sort: (r) => r.other_count }, ...numbers(time, "ns", "other_ns")],
      data.spans, "Spans of both"),
      element("h2", {}, "Memory held at the peak"),
      table([{ name: "line", of: (r) => r.line || "none", sort: (r) => r.line, mono: true }, { name: "kind", of: (r) => r.kind, sort: (r) => r.kind },
        ...numbers(bytes, "bytes", "other_bytes")], data.memory, "Memory of both"));
  }
}

// Launches of both, from a common beginning: what one alone has is framed, what takes longer or shorter underlined.
class Lanes {
  constructor({ go, say }) {
    this.go = go;
    this.say = say;
    this.bars = [];
    this.pane = canvasPane("canvas-box", "Kernels of both over time: arrows go from one to the next, Enter opens the kernel",
      (context, width, height) => this.draw(context, width, height));
    listenTo(this.pane.canvas, { key: (event) => this.key(event), drag: () => {}, click: (event) => this.choose(this.hit(event)) });
    this.pane.canvas.addEventListener("dblclick", () => this.open());
  }

  async show(data) {
    this.longest = Math.max(data.one.ns, data.other.ns, 1);
    const resolution = Math.floor(this.longest / Math.max(this.pane.box.clientWidth, 400));
    const lane = async (part, number, key) => {
      const rows = new Map(data.kernels.map((row) => [row[key] ?? row.name, row]));
      const { tracks } = await view("timeline", { begin: part.begin, end: part.end, resolution });
      const inside = (span) => (part.realization === null ? span.start >= part.begin && span.start < part.end : span.realization === part.realization);
      return tracks.flatMap((track) => track.spans.filter((span) => span.name === "kernel" && inside(span)).map((span) => ({
        ...span, lane: number, at: span.start - part.begin, row: rows.get(span.kernel ?? span.detail),
      })));
    };
    this.names = [data.one, data.other].map((part, i) => `${i === 0 ? "first" : "second"}: ${part.realization === null ? time(part.begin) : `realization ${part.realization}`}, ${time(part.ns)}, ${count(part.launches)} launches`);
    this.bars = [...await lane(data.one, 0, "kernel"), ...await lane(data.other, 1, "other_kernel")];
    this.pane.redraw();
  }

  mark(bar) {
    if (!bar.row) return "";
    if (bar.row.what !== "same") return bar.row.what;
    if (Math.abs(bar.row.difference) < NOTABLE * bar.row.ns) return "";
    return (bar.row.difference > 0) === (bar.lane === 1) ? "longer" : "shorter";
  }

  place(bar, width) {
    const x = 6 + bar.at / this.longest * (width - 12);
    return [x, HEAD + bar.lane * (LANE + HEAD), Math.max(bar.ns / this.longest * (width - 12), 0.8), LANE];
  }

  draw(context, width, height) {
    const colours = { added: colour("added"), gone: colour("removed"), longer: colour("removed"), shorter: colour("added") };
    const light = colour("bar-light"), text = colour("text"), quiet = colour("quiet");
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [lane, name] of (this.names ?? []).entries()) {
      context.fillStyle = quiet;
      context.fillText(name, 6, lane * (LANE + HEAD) + HEAD / 2);
    }
    for (const bar of this.bars) {
      const [x, y, w, h] = this.place(bar, width);
      const mark = this.mark(bar);
      context.fillStyle = `hsl(${hue(hashOf(bar.row?.name ?? bar.detail) % 97)} 50% ${light})`;
      context.fillRect(x, y, w, h);
      if (mark) {
        context.fillStyle = colours[mark];
        context.fillRect(x, y + h - 4, w, 4);
        if (mark === "added" || mark === "gone") context.fillRect(x, y, w, 4);
      }
      if (w > 40) {
        context.fillStyle = text;
        const name = bar.merged > 1 ? `${bar.merged} launches` : bar.row?.name ?? bar.detail;
        const most = Math.floor((w - 6) / 6);
        context.fillText(name.length <= most ? name : `${name.slice(0, most - 1)}…`, x + 3, y + h / 2);
      }
      if (bar === this.chosen) {
        context.strokeStyle = colour("accent");
        context.lineWidth = 2;
        context.strokeRect(x, y, w, h);
      }
    }
    context.fillStyle = quiet;
    context.fillText("underlined: longer (red) or shorter (green) than in the other by a tenth; over- and underlined: only here", 6, 2 * (LANE + HEAD) + HEAD / 2);
  }

  hit(event) {
    const width = this.pane.canvas.clientWidth;
    return this.bars.find((bar) => {
      const [x, y, w, h] = this.place(bar, width);
      return event.offsetX >= x - 1 && event.offsetX <= x + w + 1 && event.offsetY >= y && event.offsetY <= y + h;
    });
  }

  choose(bar) {
    if (!bar) return;
    this.chosen = bar;
    const { row } = bar;
    this.say(`${row?.name ?? bar.detail}: ${time(bar.ns)} at ${time(bar.at)}${bar.merged > 1 ? `, ${bar.merged} launches` : ""}${row ? `; all of it ${time(row.ns)} and ${time(row.other_ns)}, ${row.what}` : ""}`);
    this.pane.redraw();
  }

  open() {
    if ((this.chosen?.kernel ?? null) !== null) this.go({ view: "kernel", kernel: this.chosen.kernel });
  }

  key(event) {
    const { chosen } = this;
    const lane = this.bars.filter((bar) => bar.lane === (chosen?.lane ?? 0));
    const at = lane.indexOf(chosen);
    if (event.key === "ArrowRight") this.choose(lane[at + 1]);
    else if (event.key === "ArrowLeft") this.choose(lane[Math.max(at - 1, 0)]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const rest = this.bars.filter((bar) => bar.lane === (event.key === "ArrowDown" ? 1 : 0));
      this.choose(rest.find((bar) => chosen?.row && bar.row === chosen.row) ?? rest.find((bar) => bar.at >= (chosen?.at ?? 0)));
    } else if (event.key === "Enter" && chosen) this.open();
    else return false;
    return true;
  }
}
