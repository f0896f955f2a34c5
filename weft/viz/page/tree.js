// The tree on the left: realizations, their kernels, the passes over each, the rules that fired.
import { view } from "./api.js";
import { count, element, time } from "./dom.js";

const AT_ONCE = 1000;

export class Tree {
  // onChoose(place): an item is to be shown.
  constructor(root, { onChoose, say }) {
    this.root = root;
    this.onChoose = onChoose;
    this.say = say;
    this.items = new Map();   // by element id
    this.changed = 1;
    this.chosen = null;
    this.numbered = 0;
    root.addEventListener("click", (event) => {
      const li = event.target.closest("li");
      if (!li) return;
      const item = this.items.get(li.id);
      if (event.target.classList.contains("twist") && item.children) this.toggle(item);
      else this.choose(item, true);
    });
    root.addEventListener("dblclick", (event) => {
      const li = event.target.closest("li");
      if (li && this.items.get(li.id).children) this.toggle(this.items.get(li.id));
    });
  }

  // What was open stays open where it is still there.
  async load() {
    const open = new Set([...this.items.values()].filter((item) => item.open).map((item) => item.key));
    const first = this.items.size === 0;
    try {
      const all = await this.realizations();
      this.items.clear();
      const chosen = this.chosen?.li.getAttribute("aria-selected") === "true" ? this.chosen.key : null;
      this.chosen = null;
      this.root.replaceChildren(...all.map((item) => this.make(item, 1)));
      const pending = all.filter((item) => open.has(item.key) || (first && item === all[0]));
      while (pending.length) {
        const item = pending.shift();
        await this.toggle(item);
        pending.push(...this.below(item).filter((child) => open.has(child.key)));
      }
      const again = [...this.items.values()].find((item) => item.key === chosen);
      if (again) this.choose(again, false);
    } catch (error) {
      this.say(error.message);
    }
  }

  below(item) { return [...(item.group?.children ?? [])].filter((li) => li.id).map((li) => this.items.get(li.id)); }

  make(item, level) {
    this.numbered += 1;
    const id = `item-${this.numbered}`;
    const row = element("div", { className: "item" },
      element("span", { className: "twist", "aria-hidden": "true" }, item.children ? "▸" : ""),
      element("span", { className: "name", title: item.name }, item.name), element("span", { className: "more" }, item.more ?? ""));
    row.style.paddingLeft = `${8 + (level - 1) * 14}px`;
    const li = element("li", { id, role: "treeitem", "aria-level": String(level), "aria-selected": "false" }, row);
    if (item.children) li.setAttribute("aria-expanded", "false");
    Object.assign(item, { id, li, level, open: false });
    this.items.set(id, item);
    return li;
  }

  async toggle(item, to = !item.open) {
    if (!item.children) return;
    if (item.open !== to) {
      item.open = to;
      item.li.setAttribute("aria-expanded", String(to));
      item.li.querySelector(".twist").textContent = to ? "▾" : "▸";
    }
    if (to) await (item.filled ??= this.fill(item));
    if (item.group) item.group.hidden = !item.open;
  }

  async fill(item) {
    item.group = element("ul", { role: "group" });
    item.li.append(item.group);
    try {
      const children = await item.children();
      if (this.items.get(item.id) !== item) return;   // the tree was read anew meanwhile
      item.group.replaceChildren(...children.map((child) => this.make(child, item.level + 1)));
      if (!children.length) item.group.replaceChildren(element("li", { role: "none", className: "none quiet" }, "nothing"));
    } catch (error) {
      this.say(error.message);
    }
  }

  choose(item, show) {
    this.chosen?.li.setAttribute("aria-selected", "false");
    this.chosen = item;
    item.li.setAttribute("aria-selected", "true");
    this.root.setAttribute("aria-activedescendant", item.id);
    item.li.firstElementChild.scrollIntoView({ block: "nearest" });
    if (show && item.place) this.onChoose(item.place);
  }

  // The item of what is shown. What it lies in is opened, as where a search or a link leads.
  async follow(place) {
    this.followed = place;
    const known = this.itemOf(place);
    if (!known && (place.view === "pass" || place.view === "kernel")) {
      this.chosen?.li.setAttribute("aria-selected", "false");
      await this.openPath(place);
    }
    const found = known ?? this.itemOf(place);   // what changed nothing may be left out
    if (!found || this.followed !== place) return;
    for (let around = found; (around = this.above(around));) await this.toggle(around, true);
    if (this.followed === place) this.choose(found, false);
  }

  async openPath(place) {
    for (const key of await this.pathTo(place).catch(() => [])) {
      const item = this.followed === place && this.find((other) => other.key === key);
      if (!item) return;
      await this.toggle(item, true);
    }
  }

  find(is) { return [...this.items.values()].find(is); }
  above(item) { return this.items.get(item.li.parentElement?.closest("li")?.id); }

  itemOf(place) {
    const same = (item) => item.place && Object.keys(item.place).every((key) => key === "mode" || String(item.place[key]) === String(place[key]));
    const exact = (item) => same(item) && (item.place.step !== undefined || place.step === undefined || item.place.view !== "pass");
    return this.chosen && exact(this.chosen) ? this.chosen : this.find(exact) ?? this.find(same);   // of a rewrite that is not listed, its pass
  }

  // Keys of what a pass or a kernel lies in, from the outside.
  async pathTo({ view: what, pass, kernel }) {
    const { passes: [first] } = await view("passes", what === "pass" ? { first: pass, count: 1 } : { kernel, count: 1 });
    if (!first || first.realization === null) return [];
    const own = what === "pass" && first.kernel !== null ? [`kernel ${first.realization} ${first.kernel}`] : [];
    return [`realization ${first.realization}`, ...own];
  }

  // From the items alone: to ask the page would be to lay it out.
  visible() {
    const all = [];
    const add = (list) => {
      for (const item of [...list.children].map((li) => this.items.get(li.id)).filter(Boolean)) {
        all.push(item);
        if (item.open && item.group) add(item.group);
      }
    };
    add(this.root);
    return all;
  }

  move(by) {
    const all = this.visible();
    const at = all.indexOf(this.chosen);
    const next = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
    if (next) this.choose(next, true);
  }

  key(key) {
    const { chosen } = this;
    if (key === "ArrowDown") this.move(1);
    else if (key === "ArrowUp") this.move(-1);
    else if (key === "Home") this.move(-Infinity);
    else if (key === "End") this.move(Infinity);
    else if (key === "Enter" && chosen) this.toggle(chosen);
    else if (key === "ArrowRight" && chosen) chosen.open ? this.move(1) : this.toggle(chosen, true);
    else if (key === "ArrowLeft" && chosen) {
      if (chosen.open) this.toggle(chosen, false);
      else if (chosen.level > 1) this.choose(this.above(chosen), true);
    } else return false;
    return true;
  }

  // ---- what there is

  async realizations() {
    const all = [];
    for (let first = 0, total = 1; first < total && first < 10 * AT_ONCE; first += AT_ONCE) {
      const part = await view("realizations", { first, count: AT_ONCE });
      total = part.total;
      all.push(...part.realizations);
    }
    return all.map((r) => ({
      key: `realization ${r.realization}`, name: `${r.kind} ${r.realization}${r.line ? `: ${r.line}` : ""}`,
      more: `${r.failed ? "failed " : ""}${r.passes ? `${count(r.passes)} ${r.passes === 1 ? "pass" : "passes"} ` : ""}${time(r.ns)}`,
      place: { view: "graph", realization: r.realization }, children: () => this.partsOf(r),
    }));
  }

  // The passes over all of it, then each kernel with its own.
  async partsOf(realization) {
    const passesOf = (changed) => view("passes", { realization: realization.realization, changed, count: AT_ONCE });
    const some = await passesOf(this.changed);
    const { passes, total } = some.total || !realization.passes ? some : await passesOf();   // where none changed anything, all
    const kernels = new Map(realization.kernels.map((k) => [k.kernel ?? `name ${k.name}`, { ...k, passes: [] }]));
    for (const id of realization.compiled) if (!kernels.has(id)) kernels.set(id, { kernel: id, name: `kernel ${id}`, passes: [] });
    const own = [];
    for (const pass of passes) {
      if (pass.kernel === null) own.push(pass);
      else if (kernels.has(pass.kernel)) Object.assign(kernels.get(pass.kernel), { name: pass.subject }).passes.push(pass);
      else kernels.set(pass.kernel, { kernel: pass.kernel, name: pass.subject, passes: [pass] });
    }
    const left = total - passes.length;
    const all = async (k) => (left ? (await view("passes", { kernel: k.kernel, changed: this.changed, count: AT_ONCE })).passes : k.passes);
    const items = own.map((pass) => this.passItem(pass));
    for (const k of kernels.values()) {
      items.push({
        key: `kernel ${realization.realization} ${k.kernel ?? k.name}`, name: k.name, more: k.ns === undefined ? "" : `${k.runs} x, ${time(k.ns)}`,
        place: k.kernel === null ? undefined : { view: "kernel", kernel: k.kernel },
        children: k.passes.length || (left && k.kernel !== null) ? async () => (await all(k)).map((pass) => this.passItem(pass)) : undefined,
      });
    }
    if (left) items.push({ key: "more", name: `... ${count(left)} passes more, of these kernels; search finds the others` });
    return items;
  }

  passItem(pass) {
    return {
      key: `pass ${pass.pass}`, name: pass.name, more: `${pass.firings ? `${count(pass.firings)} fired, ` : ""}${time(pass.ns)}`,
      place: { view: "pass", pass: pass.pass }, children: pass.firings ? () => this.firingsOf(pass) : undefined,
    };
  }

  async firingsOf(pass) {
    const { firings, total } = await view("firings", { pass: pass.pass, count: 200 });
    const items = firings.map((f) => ({
      key: `firing ${pass.pass} ${f.step}`, name: `${f.rule}: ${f.before} → ${f.after}`, place: { view: "pass", pass: pass.pass, mode: "rewrites", step: f.step },
    }));
    if (total > firings.length) items.push({ key: "more", name: `... ${count(total - firings.length)} more: arrow keys step through them`, place: { view: "pass", pass: pass.pass, mode: "rewrites", step: firings.length } });
    return items;
  }
}
