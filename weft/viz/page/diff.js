// A difference of two texts, line by line.
import { count, element, fillInParts } from "./dom.js";

const SIGNS = { added: "+", removed: "−", same: " " };

export function difference(lines) {
  const root = element("div", { className: "diff", role: "group", "aria-label": "Difference", tabIndex: 0 });
  if (!lines?.length) return element("p", { className: "quiet" }, "No text differs.");
  fillInParts(root, lines.length, (i) => made(lines[i]));
  return root;
}

function made(line) {
  return line.kind === "skipped" ? element("div", { className: "skipped" }, `⋯ ${count(line.count)} lines the same`)
    : element("div", { className: line.kind }, element("span", { className: "number" }, String(line.before ?? "")),
      element("span", { className: "number" }, String(line.after ?? "")), element("span", { "aria-label": line.kind }, SIGNS[line.kind]), element("span", {}, line.text));
}
