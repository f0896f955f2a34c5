// Markdown to DOM nodes. Text only ever becomes text: nothing here makes markup of what a model wrote.

const MOST_DEPTH = 6;

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

const INLINE = [
  [/^(`+)([^`]|[^`].*?[^`])\1(?!`)/s, (m) => element("code", {}, m[2].trim())],
  [/^\*\*(?=\S)(.+?\S|\S)\*\*/s, (m, depth) => element("strong", {}, ...inline(m[1], depth))],
  [/^__(?=\S)(.+?\S|\S)__(?!\w)/s, (m, depth) => element("strong", {}, ...inline(m[1], depth))],
  [/^~~(?=\S)(.+?)~~/s, (m, depth) => element("del", {}, ...inline(m[1], depth))],
  [/^\*(?=\S)([^*]*?[^\s*])\*(?!\*)/s, (m, depth) => element("em", {}, ...inline(m[1], depth))],
  [/^_(?=\S)([^_]*?[^\s_])_(?!\w)/s, (m, depth) => element("em", {}, ...inline(m[1], depth))],
  [/^\[([^\[\]]{1,500})\]\((\S{1,2000}?)\)/, (m, depth) => link(m[2], inline(m[1], depth))],
  [/^https?:\/\/[^\s<>"'`*]{1,2000}[^\s<>"'`*.,;:!?)\]]/, (m) => link(m[0], [m[0]])],
  [/^\\([\\`*_{}\[\]()#+\-.!~|>])/, (m) => m[1]],
  [/^ {2,}\n/, () => element("br")],
];

// Only where a click goes to another site, and then without saying from where.
function link(address, children) {
  let url = null;
  try {
    url = new URL(address);
  } catch {
    // no address, then
  }
  if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) return element("span", {}, ...children);
  return element("a", { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}

export function inline(text, depth = 0) {
  if (depth > MOST_DEPTH) return [text];
  const out = [];
  let plain = "";
  for (let at = 0; at < text.length;) {
    const special = text.slice(at).search(/[`*_~[\\]|https?:| {2,}\n/);
    if (special !== 0) {
      const end = special < 0 ? text.length : at + special;
      plain += text.slice(at, end);
      at = end;
      continue;
    }
    const rest = text.slice(at, at + 5000);
    const inWord = /\w$/.test(plain) && rest[0] === "_";
    const row = inWord ? null : INLINE.map(([pattern, make]) => [rest.match(pattern), make]).find(([m]) => m);
    if (row) {
      if (plain) out.push(plain);
      plain = "";
      out.push(row[1](row[0], depth + 1));
      at += row[0][0].length;
    } else {
      plain += text[at++];
    }
  }
  if (plain) out.push(plain);
  return out;
}

function codeBlock(language, text) {
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  return element("figure", {},
    element("figcaption", {}, element("span", {}, language || "text"), copy),
    element("pre", { tabIndex: 0 }, element("code", {}, text)));
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim());

function table(lines) {
  const row = (line, name) => element("tr", {}, ...cells(line).map((c) => element(name, {}, ...inline(c))));
  return element("table", {}, element("thead", {}, row(lines[0], "th")),
    element("tbody", {}, ...lines.slice(2).map((line) => row(line, "td"))));
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;

function list(lines, depth) {
  const first = lines[0].match(ITEM);
  const ordered = /\d/.test(first[2]);
  const items = [];
  for (const line of lines) {
    const m = line.match(ITEM);
    if (m && m[1].length <= first[1].length) items.push([line.slice(m[0].length)]);
    else items.at(-1).push(line.slice(Math.min(line.length - line.trimStart().length, first[0].length)));
  }
  const made = element(ordered ? "ol" : "ul", {}, ...items.map((item) => element("li", {}, ...blocks(item, depth + 1))));
  if (ordered) made.start = parseInt(first[2], 10);
  return made;
}

// Lines from `at` on that belong together, and where the next begin.
function take(lines, at, belongs) {
  let end = at + 1;
  while (end < lines.length && belongs(lines[end], end)) ++end;
  return [lines.slice(at, end), end];
}

const STARTS = /^\s*(```|~~~|#{1,6}\s|>|([-*+]|\d{1,9}[.)])\s+\S)/;

function blocks(lines, depth = 0) {
  const out = [];
  if (depth > MOST_DEPTH) return [lines.join("\n")];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    const fence = line.match(/^\s*(`{3,}|~{3,})\s*([\w+#.-]*)/);
    const heading = line.match(/^(#{1,6})\s+(.*)/);
    let group;
    if (!line.trim()) {
      ++at;
    } else if (fence) {
      let end = at + 1;
      while (end < lines.length && !lines[end].trim().startsWith(fence[1])) ++end;
      out.push(codeBlock(fence[2], lines.slice(at + 1, end).join("\n")));
      at = end + 1;
    } else if (heading) {
      out.push(element(`h${Math.min(6, heading[1].length + 1)}`, {}, ...inline(heading[2])));
      ++at;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.push(element("hr"));
      ++at;
    } else if (/^\s*>/.test(line)) {
      [group, at] = take(lines, at, (l) => /^\s*>/.test(l));
      out.push(element("blockquote", {}, ...blocks(group.map((l) => l.replace(/^\s*> ?/, "")), depth + 1)));
    } else if (ITEM.test(line)) {
      [group, at] = take(lines, at, (l, i) => ITEM.test(l) || (l.trim() ? /^\s+/.test(l) || lines[i - 1].trim() && !STARTS.test(l) : ITEM.test(lines[i + 1] ?? "") || /^\s{2,}\S/.test(lines[i + 1] ?? "")));
      out.push(list(group, depth));
    } else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "")) {
      [group, at] = take(lines, at, (l) => l.includes("|"));
      out.push(table(group));
    } else {
      [group, at] = take(lines, at, (l) => l.trim() && !STARTS.test(l));
      out.push(element("p", {}, ...inline(group.join("\n"))));
    }
  }
  return out;
}

export function markdown(text) {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"));
}
