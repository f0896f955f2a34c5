// The pass pane: what one step of the compiler changed, as a difference, a graph, or rule by rule.
import { view } from "./api.js";
import { difference } from "./diff.js";
import { button, count, element, facts, link, longText, table, time } from "./dom.js";
import { GraphPane } from "./graph.js";

const MODES = [["diff", "Difference (s)"], ["graph", "Graph (g)"], ["rewrites", "Rewrites (← →)"], ["after", "After"], ["before", "Before"]];

const code = (text) => element("div", { className: "code", tabIndex: 0 }, longText(text));

export class PassPane {
  constructor(place, tools) {
    Object.assign(this, tools);
    this.pass = Number(place.pass);
    this.body = element("div", { className: "fill" });
    this.root = this.body;
    this.title = element("h1", { className: "line" }, `pass ${this.pass}`);
    this.tabs = MODES.map(([mode, name]) => button(name, () => this.go({ view: "pass", pass: this.pass, mode }), { "data-mode": mode }));
    this.steps = [["previous", "‹ previous (p)"], ["next", "next › (n)"]].map(([to, name]) => button(name, () => this.turn(to), { "data-to": to }));
    this.head = [this.title, ...this.steps, ...this.tabs];   // as wide as they are from the first: nothing moves under a click
    this.ready = view("pass", { pass: this.pass }).then((data) => {
      this.data = data;
      this.title.textContent = `${data.name}${data.subject ? ` of ${data.subject}` : ""}`;
      for (const step of this.steps) step.disabled = data[step.dataset.to] === null;
    });
    this.update(place);
  }

  // To the pass before or the next, once it is known which that is.
  async turn(to) {
    await this.ready.catch(() => {});
    const pass = this.data?.[to] ?? null;
    if (pass === null) this.say(to === "next" ? "This is the last pass." : "This is the first pass.");
    else this.go({ view: "pass", pass, mode: this.mode === "rewrites" ? undefined : this.mode });
  }

  // Whether a place is shown by this pane.
  fits(place) { return place.view === "pass" && Number(place.pass) === this.pass; }

  async update(place) {
    this.mode = place.mode ?? "diff";
    this.step = Number(place.step ?? 0);
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.dataset.mode === this.mode));
    try {
      if (this.mode === "graph") this.ready.catch((error) => this.say(error.message));   // a large one's text takes longer
      await (this.mode === "graph" ? null : this.ready);   // not before the constructor is through: the head is not there yet
      await this.show();
    } catch (error) {
      this.say(error.message);
      this.body.replaceChildren(element("p", { className: "error", role: "alert" }, error.message));
    }
  }

  async show() {
    const { data, mode } = this;
    if (mode === "graph") {
      this.graph ??= new GraphPane({ pass: this.pass, side: "both" }, this);
      this.body.replaceChildren(this.graph.root);
      this.onHead?.(this.graph.head);
      return;
    }
    this.onHead?.([]);
    if (mode === "rewrites") return this.showFiring();
    const parts = mode === "diff" ? [this.summary(), difference(data.diff)] : [code(data[mode] ?? "")];
    this.fill(parts);
  }

  fill(parts) {
    const body = element("div", { className: "body column" }, ...parts);
    body.style.overflow = "auto";
    this.body.replaceChildren(body);
  }

  summary() {
    const { data, go } = this;
    const rules = table([
      { name: "rule", of: (r) => link(r.rule, () => go({ view: "rules", text: r.rule })), sort: (r) => r.rule },
      { name: "fired", of: (r) => count(r.count), sort: (r) => r.count, number: true }, { name: "", of: (r) => r.text, mono: true },
      { name: "proof", of: (r) => r.proof || "none known" }, { name: "source", of: (r) => r.source },
      { name: "", of: (r) => (data.kernel === null ? "" : link("without it", () => go({ view: "recompile", kernel: data.kernel, rules: r.rule }))) },
    ], data.rules ?? [], "Rules that fired");
    return element("div", {}, facts([
      ["afterwards", data.afterwards], ["line", data.line ? link(data.line, () => go({ view: "lines" })) : ""],
      ["kernel", data.kernel === null ? "" : link(`kernel ${data.kernel}`, () => go({ view: "kernel", kernel: data.kernel }))],
      ["took", time(data.ns)], ["size", `${count(data.size_before)} → ${count(data.size_after)}`],
    ]), ...(data.rules?.length ? [rules, element("h2", {}, "Difference")] : []));
  }

  async showFiring() {
    if (!this.data.firings) return this.fill([element("p", { className: "quiet" }, "No rule fired here that was written down.")]);
    const f = await view("firing", { pass: this.pass, step: this.step });
    const { go, pass } = this;
    const to = (step) => go({ view: "pass", pass, mode: "rewrites", step });
    this.fill([
      element("div", { className: "row" }, button("‹", () => to(f.step - 1), { disabled: f.step === 0, "aria-label": "Previous rewrite" }),
        ` ${count(f.step + 1)} of ${count(f.total)} `, button("›", () => to(f.step + 1), { disabled: f.step + 1 >= f.total, "aria-label": "Next rewrite" })),
      facts([["rule", link(f.rule, () => go({ view: "rules", text: f.rule }))], ["text", f.text], ["source", f.source], ["proof", f.proof || "none known"],
        ["before", f.before], ["after", f.after]]),
      difference(f.diff),
    ]);
    this.say(`rewrite ${f.step + 1} of ${f.total}: ${f.rule}`);
    this.firing = f;
  }

  globalKey(key) {
    const { pass } = this;
    if (this.mode === "graph" && this.graph?.globalKey(key)) return true;
    if (key === "g") this.go({ view: "pass", pass, mode: "graph" });
    else if (key === "s") this.go({ view: "pass", pass, mode: "diff" });
    else if (key === "n" || key === "p") this.turn(key === "n" ? "next" : "previous");
    else if (key === "c" && (this.data?.kernel ?? null) !== null) this.go({ view: "kernel", kernel: this.data.kernel });
    else if ((key === "ArrowRight" || key === "ArrowLeft") && this.data?.firings && this.mode !== "graph") {
      const step = this.mode === "rewrites" ? this.step + (key === "ArrowRight" ? 1 : -1) : 0;
      if (step >= 0 && step < (this.firing?.total ?? this.data.firings)) this.go({ view: "pass", pass, mode: "rewrites", step });
    } else return false;
    return true;
  }
}
