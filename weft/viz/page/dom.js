// Elements, tables and numbers as people read them. Text never becomes markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function button(text, action, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", action);
  return made;
}

export function link(text, action) {
  return button(text, action, { className: "link" });
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function scaled(value, units, step) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) {
    value /= step;
    i += 1;
  }
  return `${value < 10 && i > 0 ? value.toFixed(2) : value < 100 && i > 0 ? value.toFixed(1) : value.toFixed(0)} ${units[i]}`;
}

const unknown = (value) => value === null || value === undefined;
export const time = (ns) => (unknown(ns) ? "" : scaled(ns, ["ns", "µs", "ms", "s"], 1000));
export const bytes = (count) => (unknown(count) ? "" : scaled(count, ["B", "KiB", "MiB", "GiB", "TiB"], 1024));
export const count = (value) => (unknown(value) ? "" : value.toLocaleString("en"));
export const rate = (value, unit) => (unknown(value) ? "" : scaled(value, ["", "k", "M", "G", "T", "P"].map((p) => p + unit), 1000));
export const percent = (share) => (unknown(share) ? "" : `${(share * 100).toFixed(1)} %`);

const LINES = 150, ROWS = 40;   // that are made at once
const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, 16));
const fillings = new WeakMap();   // of a root, its last one

// Lines of a long text, so many of them: the browser neither lays out nor paints what is not seen, and knows how high it is.
function part(rows, lines) {
  const made = element("div", { className: "part" }, ...rows);
  made.style.setProperty("--lines", String(lines));
  return made;
}

// A long text, whose lines are found and copied as those of one.
export function longText(text) {
  const pre = element("pre");
  for (let at = 0; at < text.length;) {
    let end = at, lines = 0;
    for (; lines < LINES && end < text.length; lines += 1) end = text.indexOf("\n", end) + 1 || text.length;
    pre.append(part([text.slice(at, end)], lines));
    at = end;
  }
  return pre;
}

// A long list: what is seen at once, the rest a few at a time while there is nothing else to do, so that keys are answered
// meanwhile. Returns a function that makes them up to one. join: what a few of them are put into.
function fill(root, total, make, few, join) {
  let done = 0;
  const upTo = (end) => {
    const last = Math.min(end, total);
    while (done < last) {
      const rows = [];
      for (const next = Math.min(done + few, last); done < next; done += 1) rows.push(make(done));
      root.append(...join(rows));
    }
  };
  const rest = () => {
    if (done >= total || fillings.get(root) !== upTo || !root.isConnected) return;
    upTo(done + few);
    idle(rest);
  };
  fillings.set(root, upTo);
  upTo(few);
  if (done < total) idle(rest);
  return upTo;
}

// Of lines; each part costs a look at whether it is seen, in every frame.
export function fillInParts(root, total, make) { return fill(root, total, make, LINES, (rows) => [part(rows, rows.length)]); }
// Of rows of a table and the like, all of which are laid out: a screen of them at once.
export function fillWithRows(root, total, make) { return fill(root, total, make, ROWS, (rows) => rows); }

// columns: [{name, of(row) -> text or node, sort(row)?, number?, mono?, short?}]; numbers and what is short are never broken. Headers sort where they can.
export function table(columns, rows, label) {
  const body = element("tbody");
  const made = (row) => element("tr", {}, ...columns.map((column) =>
    element("td", { className: column.number ? "number" : column.mono ? "mono" : column.short ? "short" : "" }, column.of(row) ?? "")));
  const fill = (sorted) => {
    body.replaceChildren();
    fillWithRows(body, sorted.length, (i) => made(sorted[i]));
  };
  let last = null;
  let up = false;
  const head = columns.map((column) => {
    if (!column.sort) return element("th", { scope: "col", className: column.number ? "number" : "" }, column.name);
    const th = element("th", { scope: "col", className: column.number ? "number" : "" });
    th.append(button(column.name, () => {
      up = last === column ? !up : !column.number;
      last = column;
      for (const other of th.parentElement.children) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
      fill([...rows].sort((a, b) => order(column.sort(a), column.sort(b))));
    }));
    return th;
  });
  fill(rows);
  return element("table", { "aria-label": label }, element("thead", {}, element("tr", {}, ...head)), body);
}

export function facts(pairs) {
  return element("dl", { className: "facts" }, ...pairs.filter(([, value]) => value !== "" && !unknown(value))
    .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// A canvas that is as large as its box, in the screen's own pixels; draw(context, width, height) in CSS pixels.
export function canvasPane(className, label, draw) {
  const canvas = element("canvas", { tabIndex: 0, role: "application", "aria-label": label });
  const box = element("div", { className }, canvas);
  let due = false;
  const frame = () => {
    due = false;
    const width = box.clientWidth, height = box.clientHeight, ratio = devicePixelRatio;
    if (width === 0 || height === 0) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, width, height);
  };
  const redraw = () => {
    if (!due) requestAnimationFrame(frame);
    due = true;
  };
  new ResizeObserver(redraw).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return { box, canvas, redraw };
}

// Keys that `key` takes stay with the canvas; `drag` is told how far the pointer went, `click` where it stayed.
export function listenTo(canvas, { key, drag, click }) {
  let from = null;
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = { x: event.offsetX, y: event.offsetY, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [dx, dy] = [event.offsetX - from.x, event.offsetY - from.y];
    if (!from.moved && Math.hypot(dx, dy) < 4) return;
    from = { x: event.offsetX, y: event.offsetY, moved: true };
    drag(dx, dy);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (from && !from.moved) click(event);
    from = null;
  });
}

export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// A colour for the nth of many kinds: angles that never come near each other.
export const hue = (index) => (index * 137.508 + 205) % 360;
export const hashOf = (text) => [...text].reduce((sum, c) => (Math.imul(sum, 31) + c.codePointAt(0)) >>> 0, 7);
