// Panes that are tables: kernels, lines, rules, statistics, results of a search.
import { view } from "./api.js";
import { bytes, count, element, link, percent, rate, table, time } from "./dom.js";

const MOST_LINKS = 3;   // a row is a line

class ListPane {
  constructor(place, tools, load) {
    Object.assign(this, tools);
    this.root = element("div", { className: "body" }, element("p", { className: "quiet" }, "Reading."));
    this.head = [];
    load.call(this, place).then((parts) => this.root.replaceChildren(...parts)).catch((error) => {
      this.say(error.message);
      this.root.replaceChildren(element("p", { className: "error", role: "alert" }, error.message));
    });
  }

  kernelLink(kernel, name) { return kernel === null ? name : link(name, () => this.go({ view: "kernel", kernel })); }
  passLinks(passes) { return element("span", {}, ...passes.slice(0, MOST_LINKS).flatMap((pass) => [link(String(pass), () => this.go({ view: "pass", pass })), " "]), passes.length > MOST_LINKS ? "…" : ""); }
}

function shareBar(share) {
  const bar = element("span", { className: "bar" });
  bar.style.width = `${Math.max(share * 80, 0.5)}px`;
  return element("span", {}, bar, ` ${percent(share)}`);
}

async function kernels() {
  const { kernels: all, total, ns } = await view("kernels", { count: 1000 });
  return [element("h1", {}, `${count(total)} kernels, ${time(ns)}`), table([
    { name: "kernel", of: (k) => this.kernelLink(k.kernel, k.name), sort: (k) => k.name },
    { name: "share", short: true, of: (k) => shareBar(k.share ?? 0), sort: (k) => k.share },
    { name: "time", of: (k) => time(k.ns), number: true, sort: (k) => k.ns }, { name: "runs", of: (k) => count(k.runs), number: true, sort: (k) => k.runs },
    { name: "median", of: (k) => time(k.median_ns), number: true, sort: (k) => k.median_ns },
    { name: "FLOP/s", of: (k) => (k.gflops ? rate(k.gflops * 1e9, "") : ""), number: true, sort: (k) => k.gflops ?? 0 },
    { name: "B/s", of: (k) => (k.gbytes ? rate(k.gbytes * 1e9, "") : ""), number: true, sort: (k) => k.gbytes ?? 0 },
    { name: "code", of: (k) => (k.code_bytes ? bytes(k.code_bytes) : ""), number: true, sort: (k) => k.code_bytes ?? 0 },
    { name: "spilled", of: (k) => k.spilled || "", number: true, sort: (k) => k.spilled ?? 0 },
    { name: "compiled in", of: (k) => time(k.compile_ns), number: true, sort: (k) => k.compile_ns ?? 0 },
    { name: "device", of: (k) => k.device }, { name: "line", of: (k) => k.line, sort: (k) => k.line },
  ], all, "Kernels")];
}

async function lines() {
  const { lines: all } = await view("lines");
  return [element("h1", {}, `${count(all.length)} lines`), table([
    { name: "line", of: (l) => l.line, sort: (l) => l.line, mono: true }, { name: "time", of: (l) => time(l.ns), number: true, sort: (l) => l.ns },
    { name: "runs", of: (l) => count(l.runs), number: true, sort: (l) => l.runs },
    { name: "kernels", of: (l) => element("span", {}, ...l.kernels.slice(0, 20).flatMap((k) => [this.kernelLink(k, `kernel ${k}`), " "])) },
    { name: "realizations", of: (l) => element("span", {}, ...l.realizations.slice(0, 12).flatMap((r) => [link(String(r), () => this.go({ view: "graph", realization: r })), " "])) },
  ], all, "Lines of the program")];
}

async function rules({ text = "", all = "" }) {
  const { rules: rows } = await view("rules", { fired: all ? "" : 1 });
  const found = text ? rows.filter((r) => r.rule.includes(text) || r.text.includes(text)) : rows;
  const unproved = found.filter((r) => !r.proof).length;
  return [element("h1", {}, `${count(found.length)} rules${text ? ` with ‘${text}’` : ""}${all ? "" : " that fired"}, ${count(unproved)} without a known proof`),
    element("p", {}, link(all ? "only those that fired" : "all rules", () => this.go({ view: "rules", all: all ? undefined : 1 })), " ", text ? link("without the filter", () => this.go({ view: "rules" })) : ""),
    table([
      { name: "rule", of: (r) => r.rule, sort: (r) => r.rule }, { name: "set", short: true, of: (r) => r.set, sort: (r) => r.set }, { name: "domain", of: (r) => r.domain, sort: (r) => r.domain },
      { name: "fired", of: (r) => count(r.fired), number: true, sort: (r) => r.fired }, { name: "proof", of: (r) => r.proof || (r.native ? "native" : "none known"), sort: (r) => r.proof },
      { name: "text", of: (r) => r.text, mono: true }, { name: "passes", short: true, of: (r) => this.passLinks(r.passes) }, { name: "source", of: (r) => r.source, sort: (r) => r.source },
    ], found, "Rules")];
}

async function statistics() {
  const s = await view("statistics");
  const all = s.passes.reduce((sum, p) => sum + p.ns, 0) || 1;
  const parts = [element("h1", {}, "Statistics"), element("h2", {}, "Compile time by pass"), table([
    { name: "pass", of: (p) => p.name, sort: (p) => p.name }, { name: "share", short: true, of: (p) => shareBar(p.ns / all), sort: (p) => p.ns },
    { name: "time", of: (p) => time(p.ns), number: true, sort: (p) => p.ns }, { name: "runs", of: (p) => count(p.runs), number: true, sort: (p) => p.runs },
    { name: "changed", of: (p) => count(p.changed), number: true, sort: (p) => p.changed }, { name: "rules", of: (p) => count(p.firings), number: true, sort: (p) => p.firings },
  ], s.passes, "Compile time by pass"), element("h2", {}, "Spans"), table([
    { name: "span", of: (p) => p.name, sort: (p) => p.name }, { name: "count", of: (p) => count(p.count), number: true, sort: (p) => p.count },
    { name: "time", of: (p) => time(p.ns), number: true, sort: (p) => p.ns }, { name: "median", of: (p) => time(p.median_ns), number: true, sort: (p) => p.median_ns },
  ], s.spans, "Spans"), element("h2", {}, "Counters"), table([
    { name: "counter", of: ([name]) => name, sort: ([name]) => name }, { name: "value", of: ([, value]) => count(value), number: true, sort: ([, value]) => value },
  ], Object.entries(s.counters ?? {}), "Counters")];
  if (s.history?.length) parts.push(element("h2", {}, "History"), table([
    { name: "time", of: (h) => h.time, sort: (h) => h.time }, { name: "commit", of: (h) => h.commit, mono: true }, { name: "machine", of: (h) => h.machine, sort: (h) => h.machine },
    { name: "what", of: (h) => `${h.group} ${h.name}`, sort: (h) => `${h.group} ${h.name}` }, { name: "seconds", of: (h) => time(h.seconds * 1e9), number: true, sort: (h) => h.seconds },
  ], s.history, "History"));
  return parts;
}

async function search({ text = "" }) {
  const { results, total } = await view("search", { text, count: 300 });
  const place = (r) => (r.pass !== null ? { view: "pass", pass: r.pass } : r.kernel !== null ? { view: "kernel", kernel: r.kernel }
    : r.rule !== null ? { view: "rules", text: r.rule, all: 1 } : r.realization !== null ? { view: "graph", realization: r.realization } : null);
  return [element("h1", {}, `${count(total)} places with ‘${text}’`), table([
    { name: "kind", of: (r) => r.kind, sort: (r) => r.kind },
    { name: "what", of: (r) => (place(r) ? link(r.text, () => this.go(place(r))) : r.text), sort: (r) => r.text },
    { name: "realization", of: (r) => r.realization ?? "", number: true }, { name: "pass", of: (r) => r.pass ?? "", number: true }, { name: "kernel", of: (r) => r.kernel ?? "", number: true },
  ], results, "Results")];
}

export const lists = Object.fromEntries(Object.entries({ kernels, lines, rules, statistics, search })
  .map(([name, load]) => [name, (place, tools) => new ListPane(place, tools, load)]));
