// Machine code: its loops with what they take, and registers through the lives of what they hold.
import { button, bytes, count, element, fillInParts, table } from "./dom.js";

const REGISTER = /\b(?:[xyz]mm\d{1,2}|tmm\d|k[0-7]|[re]?(?:ax|bx|cx|dx|si|di|bp|sp)|[abcd]l|[sd]il|[sb]pl|r(?:8|9|1[0-5])[dwb]?)\b/g;

// One name for a register whatever its width.
function plainName(text) {
  return text.replace(/^[xyz](?=mm)/, "").replace(/^[re](?=[a-ds])/, "").replace(/^(r\d+)[dwb]$/, "$1").replace(/^([abcd])l$/, "$1x").replace(/^([sdb][ip])l$/, "$1");
}

const cycles = (value) => value.toFixed(1);

export class CodePanel {
  // rest: asks for the lines behind those that are given, up to so many in all.
  constructor(code, block, { go, say, rest, most }) {
    this.code = code;
    this.numbers = new Map(code.registers.map((r, i) => [plainName(r.name), i]));
    this.hot = code.loops.find((l) => l.hot);
    this.rows = [];
    this.lit = [];
    this.lives = [];   // that are lit
    this.from = code.lines[0]?.line ?? 0;
    this.names = this.header();
    const pre = element("pre", { className: "listing" }, this.names);
    const fill = (first) => fillInParts(pre, code.lines.length - first, (i) => {
      this.rows[first + i] = this.row(code.lines[first + i]);
      this.lightRow(first + i);
      return this.rows[first + i];
    });
    const given = code.lines.length;
    this.makeRows = fill(0);
    this.whole = given === code.total ? Promise.resolve() : rest(code).then((lines) => {
      code.lines.push(...lines);
      this.makeRows(given);
      const more = fill(given);
      this.makeRows = (end) => more(end - given);
    }).catch((error) => say(error.message));
    this.box = element("div", { className: "code", tabIndex: 0, "aria-label": "Machine code" }, pre);
    pre.addEventListener("click", (event) => this.click(event.target));
    this.buttons = element("div", { className: "registers", role: "group", "aria-label": "Registers: lights up what each holds" },
      ...code.registers.map((r, i) => button(r.name, () => this.toggle(i), { "aria-pressed": "false" })));
    this.parts = [
      element("h2", {}, "Machine code"),
      element("p", { className: "quiet" }, this.summary()),
      ...(code.loops.length ? [this.loops()] : []),
      element("p", {}, button("Control flow (f)", () => go({ view: "graph", kernel: code.kernel })), " ",
        element("span", { className: "quiet" }, "A click on a register shows the life of what it holds; columns: v written, o used, ^ used for the last time, x both, | kept.")),
      this.buttons, this.box,
      ...(code.total > most ? [element("p", { className: "quiet" }, `${count(code.total - most)} more lines: weft viz FILE --text code --param kernel=${code.kernel} --param first=${most}`)] : []),
    ];
    if (block !== undefined && code.blocks[block]) requestAnimationFrame(() => this.show(code.blocks[block].first));
  }

  summary() {
    const { in_memory: inMemory, spills, reloads, rematerialised, frame_bytes: frame, estimate } = this.code;
    return `${count(inMemory)} values in memory (${count(spills)} spills, ${count(reloads)} reloads), ${count(rematerialised)} computed again, ${bytes(frame)} of frame. Cycles are ${estimate}.`;
  }

  loops() {
    return table([
      { name: "loop", short: true, of: (l) => element("span", { className: l.hot ? "hot-name" : "" }, `${"\u00a0\u00a0".repeat(l.depth - 1)}${l.loop}${l.hot ? " hot" : ""}`) },
      { name: "lines", short: true, of: (l) => button(`${l.first} to ${l.last}`, () => this.show(l.first), { className: "link" }) },
      { name: "instructions", of: (l) => count(l.instructions), number: true, sort: (l) => l.instructions },
      { name: "cycles", of: (l) => cycles(l.cycles), number: true, sort: (l) => l.cycles },
      { name: "chain", of: (l) => cycles(l.chain), number: true, sort: (l) => l.chain },
      { name: "ports", of: (l) => l.ports.filter((p) => p.cycles >= 0.05).map((p) => `${p.port} ${cycles(p.cycles)}`).join(", ") },
      { name: "in, out", short: true, of: (l) => `${bytes(l.loaded)}, ${bytes(l.stored)}` },
    ], this.code.loops, "Loops");
  }

  header() {
    const names = this.code.registers.map((r) => r.name), height = Math.max(...names.map((n) => n.length), 0);
    const lines = Array.from({ length: height }, (_, row) => " ".repeat(6) + names.map((n) => n.padStart(height)[row]).join(""));
    return element("div", { className: "names quiet" }, lines.join("\n"));
  }

  row(line) {
    const made = element("div", { title: line.bytes ? `offset ${line.offset.toString(16)}: ${line.bytes}` : "" });
    const { hot } = this;
    if (hot && line.line >= hot.first && line.line <= hot.last) made.classList.add("hot");
    if (line.frame) made.classList.add("spill");
    made.append(element("span", { className: "quiet" }, `${String(line.line).padStart(5)} `), element("span", { className: "lives" }, `${line.registers} `));
    const text = line.latency || line.port ? `  ${line.text}` : line.text;
    let at = 0;
    for (const found of text.matchAll(REGISTER)) {
      made.append(text.slice(at, found.index), element("span", { "data-register": plainName(found[0]) }, found[0]));
      at = found.index + found[0].length;
    }
    made.append(text.slice(at));
    if (line.port) made.append(element("span", { className: "quiet" }, `${" ".repeat(Math.max(60 - text.length, 1))}; ${String(line.latency).padStart(2)} ${line.port}${line.frame ? `  ${line.frame}` : ""}`));
    return made;
  }

  async show(line) {
    const at = line - this.from;
    if (at >= this.code.lines.length) await this.whole;
    this.makeRows(at + 100);
    const row = this.rows[at];
    if (!row) return;
    this.box.scrollTop += row.getBoundingClientRect().top - this.names.getBoundingClientRect().bottom - 40;
    this.box.scrollIntoView({ block: "nearest" });
  }

  // ---- registers

  click(target) {
    const name = target.dataset?.register, row = target.closest("div");
    if (name === undefined) return this.light([]);
    const reg = this.numbers.get(name), line = this.rows.indexOf(row) + this.code.lines[0].line;
    const writes = row.querySelector("[data-register]") === target && this.code.lines[this.rows.indexOf(row)].registers[reg] === "x";
    const own = this.code.lives.filter(([r, first, last]) => r === reg && first <= line && line <= last);
    return this.light(own.length ? [writes ? own[own.length - 1] : own[0]] : []);
  }

  toggle(reg) {
    const on = this.buttons.children[reg].getAttribute("aria-pressed") !== "true";
    this.light(on ? this.code.lives.filter(([r]) => r === reg) : []);
    this.buttons.children[reg].setAttribute("aria-pressed", String(on));
  }

  // lives of one register
  light(lives) {
    for (const other of this.buttons.children) other.setAttribute("aria-pressed", "false");
    for (const other of this.lit) other.classList.remove("alive", "lit");
    this.lit = [];
    this.lives = lives;
    for (const [, first, last] of lives) for (let line = first; line <= last; line += 1) this.lightRow(line - this.from);
  }

  lightRow(i) {
    const at = i + this.from, row = this.rows[i];
    const life = row && this.lives.find(([, first, last]) => first <= at && at <= last);
    if (!life) return;
    const named = row.querySelectorAll(`[data-register="${plainName(this.code.registers[life[0]].name)}"]`);
    row.classList.add("alive");
    for (const span of named) span.classList.add("lit");
    this.lit.push(row, ...named);
  }
}
