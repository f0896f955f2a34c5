// The kernel pane: what a kernel costs, why it is as it is, its texts, its place under the roofline.
import { view } from "./api.js";
import { CodePanel } from "./code.js";
import { difference } from "./diff.js";
import { bytes, button, count, element, facts, link, longText, percent, rate, svg, table, time } from "./dom.js";

const NAMES = { listing: "Listing", bytes: "Bytes", c: "C", opencl: "OpenCL", wgsl: "WGSL", ptx: "PTX", graph: "Graph", program: "Program" };

const FIRST_TEXT = "program", FIRST_LINES = 60, MOST_LINES = 4000;

// Of the texts none is here; the one that is shown is asked for.
function texts(all, kernel, say) {
  if (!all.length) return [];
  const panel = element("div", { role: "tabpanel", className: "code", tabIndex: 0 });
  const tabs = element("div", { role: "tablist", "aria-label": "Texts" });
  const choose = (i) => {
    [...tabs.children].forEach((tab, n) => {
      tab.setAttribute("aria-selected", String(n === i));
      tab.tabIndex = n === i ? 0 : -1;
    });
    const chosen = all[i];
    const show = () => tabs.children[i].getAttribute("aria-selected") === "true" && panel.replaceChildren(longText(chosen.text));
    if (chosen.text !== null) return show();
    return view("kernel", { kernel, text: chosen.kind }).then((k) => {
      chosen.text = k.texts[i].text;
      show();
    }).catch((error) => say(error.message));
  };
  tabs.append(...all.map(({ kind }, i) => button(NAMES[kind] ?? kind, () => choose(i), { role: "tab" })));
  tabs.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const now = [...tabs.children].indexOf(document.activeElement);
    const next = (now + by + all.length) % all.length;
    choose(next);
    tabs.children[next].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  choose(Math.max(all.findIndex((t) => t.kind === FIRST_TEXT), 0));
  return [element("h2", {}, "Texts"), tabs, panel];
}

// Each above the beginning of its slope or, where that is taken, further up along it.
function slopeNames(slopes) {
  const placed = [];
  for (const { name, x1, y1, x2, y2 } of slopes) {
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const at = { name, x: x1 + 5, y: y1 - 5, width: 6 * name.length + 6 };
    const meets = (other) => at.x < other.x + other.width && other.x < at.x + at.width && Math.abs(at.y - other.y) < 12;
    while (at.x < x2 && placed.some(meets)) {
      at.x += 4 * (x2 - x1) / length;
      at.y += 4 * (y2 - y1) / length;
    }
    placed.push(at);
  }
  return placed.map(({ name, x, y }) => svg("text", { x, y, class: "small" }, name));
}

// Both axes are logarithmic: FLOP per byte, FLOP per second. One slope for each level of memory.
export function roofline(r) {
  if (!r?.flops || !r.bytes) return null;
  const [width, height, left, bottom, right] = [480, 280, 66, 34, 60];
  const measured = r.measured_seconds ? r.flops / r.measured_seconds : null;
  const predicted = r.predicted_seconds ? r.flops / r.predicted_seconds : null;
  const peak = r.limits?.flops_per_second ?? null;
  const levels = r.limits?.levels ?? [];
  const xs = [r.intensity, ...levels.map((l) => peak / l.bytes_per_second)], ys = [measured, predicted, peak].filter(Boolean);
  if (!ys.length) return null;
  const low = (all) => Math.floor(Math.log10(Math.min(...all))) - 1, high = (all) => Math.ceil(Math.log10(Math.max(...all)) + 0.3);
  const [x0, x1, y0, y1] = [low(xs), high(xs), low(ys), high(ys)];
  const x = (v) => left + (Math.log10(v) - x0) / (x1 - x0) * (width - left - right);
  const y = (v) => 10 + (y1 - Math.log10(v)) / (y1 - y0) * (height - bottom - 10);
  const parts = [];
  for (let p = x0; p <= x1; p += 1) {
    parts.push(svg("line", { class: "grid", x1: x(10 ** p), x2: x(10 ** p), y1: 10, y2: height - bottom }));
    parts.push(svg("text", { x: x(10 ** p), y: height - bottom + 14, "text-anchor": "middle" }, String(10 ** p)));
  }
  for (let p = y0; p <= y1; p += 1) {
    parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(10 ** p), y2: y(10 ** p) }));
    parts.push(svg("text", { x: left - 4, y: y(10 ** p) + 4, "text-anchor": "end" }, rate(10 ** p, "F/s")));
  }
  parts.push(svg("text", { x: (width - right + left) / 2, y: height - 4, "text-anchor": "middle" }, "FLOP per byte"));
  const slopes = levels.map(({ name, bytes_per_second: slope }) => {
    const start = Math.max(10 ** x0, 10 ** y0 / slope);
    return { name, x1: x(start), y1: y(start * slope), x2: x(peak / slope), y2: y(peak) };
  });
  for (const { name, ...line } of slopes) parts.push(svg("line", { class: name === r.bound ? "roof" : "roof faint", ...line }));
  parts.push(...slopeNames(slopes));
  if (peak) {
    parts.push(svg("line", { class: "roof", x1: x(Math.min(...levels.map((l) => peak / l.bytes_per_second))), y1: y(peak), x2: x(10 ** x1), y2: y(peak) }));
    parts.push(svg("text", { x: width - right + 4, y: y(peak) + 4 }, rate(peak, "F/s")));
  }
  if (predicted) parts.push(svg("circle", { class: "predicted", cx: x(r.intensity), cy: y(predicted), r: 5 }));
  if (measured) parts.push(svg("circle", { class: "measured", cx: x(r.intensity), cy: y(measured), r: 4 }));
  const part = r.measured_seconds && r.roof_seconds ? r.roof_seconds / r.measured_seconds : 0;
  const share = part > 1 ? ", faster than the limits allow: the machine is busy now" : part ? `, ${percent(part)} of what ${r.bound === "compute" ? "computing" : r.bound} allows` : "";
  const words = [`${r.intensity.toPrecision(3)} FLOP per byte`, measured ? `measured ${rate(measured, "FLOP/s")} (dot)${share}` : "", predicted ? `predicted ${rate(predicted, "FLOP/s")} (ring)` : "",
    r.limits ? `limits of ${r.limits.threads} threads, ${r.limits.source}` : "the machine's limits are not known: it is another one"].filter(Boolean).join("; ");
  return element("figure", {}, svg("svg", { width, height, role: "img", "aria-label": `Roofline: ${words}` }, ...parts),
    element("figcaption", { className: "quiet" }, words));
}

function search(found) {
  if (!found) return [];
  return [element("h2", {}, "Search"), facts(Object.entries(found).map(([name, value]) => [name.replaceAll("_", " "), typeof value === "object" ? JSON.stringify(value) : String(value)]))];
}

// The kernel compiled again, with rules switched off: what they are good for.
export class RecompilePane {
  constructor({ kernel, rules }, { go, say }) {
    this.head = [element("h1", {}, `kernel ${kernel} without ${rules}`), button("The kernel (c)", () => go({ view: "kernel", kernel }))];
    this.root = element("div", { className: "body" }, element("p", { className: "quiet" }, "Compiling."));
    this.globalKey = (key) => key === "c" && (go({ view: "kernel", kernel }), true);
    view("recompile", { kernel, rules }).then((r) => this.root.replaceChildren(
      element("p", {}, r.changed ? "The code differs: − with the rules, + without them." : "The code is the same."), difference(r.diff)))
      .catch((error) => {
        say(error.message);
        this.root.replaceChildren(element("p", { className: "error", role: "alert" }, error.message));
      });
  }
}

function rulesOff(kernel, go) {
  const input = element("input", { type: "search", placeholder: "mul.one,add.*", "aria-label": "Rules to switch off: names or prefixes*, separated by commas", spellcheck: false });
  const form = element("form", {}, "Without the rules ", input, " ", element("button", { type: "submit" }, "Compile again"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) go({ view: "recompile", kernel, rules: input.value.trim() });
  });
  return form;
}

export class KernelPane {
  constructor({ kernel, block }, { go, say }) {
    this.go = go;
    this.root = element("div", { className: "body" });
    this.head = [];
    this.globalKey = (key) => key === "f" && this.hasCode && (go({ view: "graph", kernel }), true);
    this.load(kernel, block, say).catch((error) => {
      say(error.message);
      this.root.replaceChildren(element("p", { className: "error", role: "alert" }, error.message));
    });
  }

  // The roofline takes longer where the machine's limits are not measured yet.
  async load(kernel, block, say) {
    const { go } = this;
    const roof = view("roofline", { kernel });
    roof.catch(() => {});   // said below
    const k = await view("kernel", { kernel, text: "none" });
    const chart = element("div", {}, element("p", { className: "quiet" }, "Roofline: being computed; the first one measures what this machine can do."));
    roof.then((r) => chart.replaceChildren(...[roofline(r)].filter(Boolean)))
      .catch((error) => chart.replaceChildren(element("p", { className: "quiet" }, `Roofline: ${error.message}`)));
    const code = element("div");
    this.hasCode = k.has_code;
    const rest = (given) => view("code", { kernel, first: given.lines.length, count: MOST_LINES - given.lines.length }).then((c) => c.lines);
    if (k.has_code) view("code", { kernel, count: FIRST_LINES }).then((c) => code.replaceChildren(...new CodePanel(c, block, { go, say, rest, most: MOST_LINES }).parts))
      .catch((error) => code.replaceChildren(element("p", { className: "error", role: "alert" }, error.message)));
    const decisions = table([
      { name: "", of: (d) => (d.staged ? "staged" : "fused"), sort: (d) => d.staged },
      { name: "value", of: (d) => d.value, mono: true }, { name: "because", of: (d) => d.reason }, { name: "line", of: (d) => d.line },
    ], k.decisions ?? [], "Decisions");
    const alternatives = table([
      { name: "", of: (a) => (a.chosen ? "chosen" : "") }, { name: "plan", of: (a) => a.plan, mono: true },
      { name: "cycles", of: (a) => count(Math.round(a.cycles)), number: true, sort: (a) => a.cycles },
    ], k.alternatives ?? [], "Alternatives");
    this.root.replaceChildren(
      element("h1", {}, `kernel ${k.kernel}: ${k.name}`),
      element("div", { className: "split" }, facts([
        ["line", k.line ? link(k.line, () => go({ view: "lines" })) : ""], ["lines", k.lines.length > 2 ? k.lines.join(", ") : ""], ["device", k.device], ["runs", count(k.runs)], ["time", `${time(k.ns)} in all, ${time(k.median_ns)} median, ${percent(k.share)} of all kernels`],
        ["work", `${rate(k.flops, "FLOP")}, ${bytes(k.bytes)}`], ["speed", [k.gflops ? rate(k.gflops * 1e9, "FLOP/s") : "", k.gbytes ? rate(k.gbytes * 1e9, "B/s") : ""].filter(Boolean).join(", ")],
        ["compiled in", time(k.compile_ns)], ["code", k.code_bytes ? bytes(k.code_bytes) : ""], ["spilled", k.spilled ? `${k.spilled} registers` : ""],
        ["passes", k.passes?.length ? link(`${k.passes.length}, from pass ${k.passes[0]}`, () => go({ view: "pass", pass: k.passes[0] })) : ""],
        ["realization", (k.realization ?? null) === null ? "" : link(String(k.realization), () => go({ view: "graph", realization: k.realization }))],
      ]), chart), code,
      ...texts(k.texts ?? [], kernel, say),
      ...(k.applied?.length ? [element("h2", {}, "Applied"), element("ul", {}, ...k.applied.map((text) => element("li", {}, text)))] : []),
      ...(k.decisions?.length ? [element("h2", {}, "Why it is fused and staged so"), decisions] : []),
      ...(k.alternatives?.length ? [element("h2", {}, "Alternatives"), alternatives] : []),
      ...search(k.search), rulesOff(k.kernel, go));
  }
}
