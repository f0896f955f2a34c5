// The page: what is shown is in the address; panes lead to each other; keys.
import { view } from "./api.js";
import { ComparePane } from "./compare.js";
import { bytes, button, count, element } from "./dom.js";
import { GraphPane } from "./graph.js";
import { KernelPane, RecompilePane } from "./kernel.js";
import { lists } from "./lists.js";
import { PassPane } from "./pass.js";
import { TimelinePane } from "./timeline.js";
import { Tree } from "./tree.js";

const $ = (id) => document.getElementById(id);
const TABS = [["graph", "Graph"], ["timeline", "Timeline"], ["compare", "Compare"], ["kernels", "Kernels"], ["lines", "Lines"], ["rules", "Rules"], ["statistics", "Statistics"]];
const KEYS = [
  ["↑ ↓", "the item before, the next"], ["Enter", "open and close an item; expand a group; open a node's kernel"], ["← →", "the rewrite before, the next; close and open an item"],
  ["p n", "the pass before, the next"], ["Space", "show all of a graph or timeline"], ["g", "the graph of what is chosen"], ["s", "the difference as text"], ["c", "the kernel's code"], ["f", "the control flow of a kernel's code"],
  ["r", "group nodes: by none, by line, by layer, by kernel"], ["t m k l u i", "timeline, compare, kernels, lines, rules, statistics"], ["/", "search"], ["?", "this list"],
  ["In a graph:", "arrows go to sources, users, neighbours; Shift+arrows move; + and - zoom"], ["In a timeline:", "arrows go from span to span; Shift+arrows move; + and - zoom; Enter opens the kernel; [ and ] mark what is seen as the first and second to compare"],
];
const GOES = { t: "timeline", m: "compare", k: "kernels", l: "lines", u: "rules", i: "statistics" };

let session = null;
let pane = null;
let place = {};

const say = (text) => { $("status").textContent = text; };
const tools = { go, say };
const tree = new Tree($("tree"), { onChoose: go, say });

// ---- places

function placeOf(hash) { return Object.fromEntries(new URLSearchParams(hash.slice(1))); }

function go(to) {
  const given = Object.entries(to).filter(([, value]) => value !== undefined && value !== null);
  const hash = `#${new URLSearchParams(given)}`;
  if (hash === location.hash) show(placeOf(hash));
  else location.hash = hash;
}

// Of a program that has computed nothing yet.
function nothingPane() { return { head: [], isNothing: true, root: element("p", { className: "body quiet" }, "Nothing was computed.") }; }

const firstRealization = () => (session.processes.some((p) => p.realizations > 0) ? 0 : undefined);

function makePane(to) {
  if (to.view === "pass") return new PassPane(to, tools);
  if (to.view === "kernel") return new KernelPane(to, tools);
  if (to.view === "recompile") return new RecompilePane(to, tools);
  if (to.view === "timeline") return new TimelinePane({ ...tools, session, realization: to.realization ?? firstRealization() });
  if (to.view === "compare") return new ComparePane(to, tools);
  if (to.view in lists) return lists[to.view](to, tools);
  if (to.kernel !== undefined) return new GraphPane({ kernel: to.kernel }, tools);
  const realization = to.realization ?? firstRealization();
  return realization === undefined ? nothingPane() : new GraphPane({ realization }, tools);
}

function show(to) {
  place = to;
  say("");
  if (pane?.fits?.(to)) pane.update(to);
  else {
    pane = makePane(to);
    const extra = element("span", { className: "row" });
    pane.onHead = (parts) => extra.replaceChildren(...parts);
    const head = element("div", { className: "head" }, ...pane.head, extra);
    const within = $("main").contains(document.activeElement);
    $("main").replaceChildren(...(pane.head.length ? [head] : []), pane.root);
    if (within) $("main").focus({ preventScroll: true });   // what had the focus is gone
    $("main").scrollTop = 0;
  }
  for (const tab of $("tabs").children) tab.setAttribute("aria-pressed", String(tab.dataset.view === (to.view ?? "graph")));
  tree.follow(to);
}

// ---- keys

function otherGraph() {
  if (place.view === "kernel") return;
  go({ view: "graph", realization: place.realization });
}

// What is typed next replaces what was looked for before.
function beginSearch() {
  $("search").focus();
  $("search").select();
}

function onKey(event) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const types = target.matches("input[type=search], select, textarea");
  if (types) {
    if (key === "Escape") $("tree").focus();
    return;
  }
  const presses = target.matches("button, input, summary, a") && (key === "Enter" || key === " ");
  if (presses || (target.id === "divider" && key.startsWith("Arrow"))) return;
  if (key === "?") $("help").showModal();
  else if (key === "/") beginSearch();
  else if (key in GOES) go({ view: GOES[key], realization: place.realization });
  else if (pane?.globalKey?.(key)) say($("status").textContent);
  else if (key === "g") otherGraph();
  else if (!tree.key(key)) return;
  event.preventDefault();
}

document.addEventListener("keydown", onKey);
addEventListener("hashchange", () => show(placeOf(location.hash)));

// ---- the frame

$("tabs").append(...TABS.map(([name, text]) => button(text, () => go({ view: name, realization: place.realization }), { "data-view": name })));
$("keys").append(...KEYS.flatMap(([key, what]) => [element("dt", {}, key), element("dd", {}, what)]));
$("help-button").addEventListener("click", () => $("help").showModal());
$("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("search").value.trim()) go({ view: "search", text: $("search").value.trim() });
});
$("changed-only").addEventListener("change", (event) => {
  tree.changed = event.target.checked ? 1 : undefined;
  tree.load();
});

function resizeSide(width) { $("side").style.width = `${Math.min(Math.max(width, 120), innerWidth - 300)}px`; }
$("divider").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -20, ArrowRight: 20 }[event.key];
  if (by) resizeSide($("side").clientWidth + by);
});
$("divider").addEventListener("pointerdown", (event) => $("divider").setPointerCapture(event.pointerId));
$("divider").addEventListener("pointermove", (event) => {
  if ($("divider").hasPointerCapture(event.pointerId)) resizeSide(event.clientX);
});

// ---- the session

function describe() {
  const { processes, missing, unproved } = session;
  const one = processes[0];
  const unfinished = processes.filter((p) => !p.finished).length;
  $("session").textContent = [unfinished ? `${unfinished} not finished` : "", processes.length > 1 ? `${processes.length} processes` : "", one ? one.command.join(" ") : "", one?.device, one?.machine, bytes(session.bytes),
    `${count(processes.reduce((sum, p) => sum + p.kernels, 0))} kernels`].filter(Boolean).join(" · ");
  $("session").title = $("session").textContent;
  const said = missing.map((m) => m.text);
  if (unproved.length) said.push(`no proof is known of rules that fired: ${unproved.join(", ")}`);
  if (said.length) say(said.join("; "));
}

// A program that still runs adds to the session.
async function follow() {
  const before = session.bytes;
  session = await view("session").catch(() => session);
  if (session.bytes !== before) {
    describe();
    if (pane.isNothing) show(place);
    await tree.load();
  }
  if (session.processes.some((p) => !p.finished)) setTimeout(follow, 2000);
}

async function start() {
  try {
    session = await view("session");
  } catch (error) {
    $("main").replaceChildren(element("p", { className: "body error", role: "alert" }, error.message));
    return;
  }
  show(placeOf(location.hash));
  describe();   // what is missing is said last
  await tree.load();
  tree.follow(place);
  $("tree").focus({ preventScroll: true });
  if (session.processes.some((p) => !p.finished)) setTimeout(follow, 2000);
}

start();
