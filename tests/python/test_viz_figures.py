"""What the page of `weft viz` shows is what `weft viz --text --json` prints: every answer it gets, and the figures it paints."""
import json
import re
import subprocess
import urllib.parse
from decimal import ROUND_HALF_UP, Decimal

import pytest

from test_viz_page import address, browser, comes_true, drawn, opened, pytestmark, recording, weft   # noqa: F401: fixtures

sync_api = pytest.importorskip("playwright.sync_api")
# What the server alone has, as it draws; and what is shown by those: tests/viz/site_test.cpp compares drawings with the view graph.
DRAWN = {"drawing", "tile", "box"}
SHOWN_ELSEWHERE = {"graph", "views"}
TEXTS = """(() => {
  window.painted = [];
  const fill = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { window.painted.push(text); return fill.call(this, text, ...rest); };
})()"""


# ---- numbers as people read them, written a second time

def rounded(value, places):
    return str(Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))


def scaled(value, units, step):
    i = 0
    while abs(value) >= step and i + 1 < len(units):
        value /= step
        i += 1
    return f"{rounded(value, 2 if value < 10 and i > 0 else 1 if value < 100 and i > 0 else 0)} {units[i]}"


def time(ns):
    return "" if ns is None else scaled(ns, ["ns", "µs", "ms", "s"], 1000)


def size(count):
    return "" if count is None else scaled(count, ["B", "KiB", "MiB", "GiB", "TiB"], 1024)


def count(value):
    return f"{value:,}"


def rate(value, unit):
    return scaled(value, [prefix + unit for prefix in ("", "k", "M", "G", "T", "P")], 1000)


def signed(value, text):
    return "" if value == 0 else ("−" if value < 0 else "+") + text(abs(value))


# ---- the page

class Watched:
    """A page, and what it was answered."""

    def __init__(self, browser, address, where=""):
        self.answers = {}
        context = browser.new_context(viewport={"width": 1400, "height": 860})
        context.add_init_script(TEXTS)
        self.page = context.new_page()
        self.flying = set()
        self.page.on("request", lambda request: self.flying.add(request))
        self.page.on("requestfailed", lambda request: self.flying.discard(request))
        self.page.on("requestfinished", self.keep)
        self.page.goto(address + where)
        sync_api.expect(self.page.locator("#tree li").first).to_be_visible()

    def keep(self, request):
        parts = urllib.parse.urlsplit(request.url)
        response = request.response()
        if parts.path.startswith("/api/") and response.status == 200:
            answer = (parts.path[5:], tuple(urllib.parse.parse_qsl(parts.query)))
            self.answers.pop(answer, None)   # the newest comes last
            self.answers[answer] = response.json()
        self.flying.discard(request)

    def settle(self):
        """Until nothing is asked for any more."""
        quiet = 0
        for _ in range(400):
            self.page.wait_for_timeout(25)
            quiet = 0 if self.flying else quiet + 1
            if quiet == 6:
                return
        raise AssertionError(f"still asked for: {[request.url for request in self.flying]}")

    def go(self, **place):
        """To what an address says; then all answers are there."""
        self.page.evaluate("where => { location.hash = where; }", "#" + urllib.parse.urlencode(place))
        self.settle()
        assert self.page.locator("#main [role=alert]").count() == 0, place

    def answer(self, name):
        return next(answer for (of, _), answer in reversed(self.answers.items()) if of == name)

    def table(self, label):
        """Its rows, by the names of its columns."""
        found = self.page.locator(f"table[aria-label='{label}']")
        names = [re.sub(r"\s+$", "", name) for name in found.locator("th").all_text_contents()]
        return [dict(zip(names, row)) for row in found.evaluate(
            "t => [...t.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent))")]

    def facts(self):
        return dict(zip(*(self.page.locator(f"#main dl.facts {part}").all_text_contents() for part in ("dt", "dd"))))

    def differences(self):
        return self.page.locator("#main .diff .part > div").all_text_contents()

    def texts(self):
        return self.page.evaluate("window.painted")


@pytest.fixture(scope="module")
def printed(recording):
    """What the terminal prints of a view."""
    def run(name, parameters):
        words = [word for key, value in parameters for word in ("--param", f"{key}={value}")]
        return json.loads(subprocess.run([weft(), "viz", recording, "--text", name, "--json", *words], check=True, capture_output=True).stdout)
    return run


@pytest.fixture(scope="module")
def watched(browser, address):
    one = Watched(browser, address)
    yield one
    one.page.context.close()


def a_pass_with_rules(printed):
    return next(p for p in printed("passes", [("changed", "1")])["passes"] if p["firings"] and p["kernel"] is not None)["pass"]


def recorded(name, answer):
    """Without what is measured when it is asked for."""
    measured = {"roofline": ("limits", "predicted_seconds", "roof_seconds")}.get(name, ())
    assert set(measured) <= set(answer)
    return {key: value for key, value in answer.items() if key not in measured}


def test_every_answer_is_what_the_terminal_prints(watched, printed):
    page = watched.page
    drawn(page)
    of = a_pass_with_rules(printed)
    runs = printed("realizations", [])["realizations"]
    for place in [*[{"view": "pass", "pass": of, "mode": mode} for mode in ("diff", "graph", "rewrites", "after", "before")],
                  {"view": "kernel", "kernel": 0}, {"view": "recompile", "kernel": 0, "rules": "add.zero"}, {"view": "timeline", "realization": 0}, {"view": "kernels"},
                  {"view": "compare", "realization": runs[0]["realization"], "other": runs[-1]["realization"]}, {"view": "lines"}, {"view": "rules"},
                  {"view": "statistics"}, {"view": "search", "text": "exp2"}]:
        watched.go(**place)
    for level in (2, 3):   # a kernel's passes, and the rules that fired in one
        page.locator(f"#tree li[aria-level='{level}'][aria-expanded=false] .twist").last.click()
        watched.settle()
    views = {view["name"] for view in printed("views", [])["views"]}
    asked = {name for name, _ in watched.answers}
    assert asked - DRAWN == views - SHOWN_ELSEWHERE, "a pane for every view, and nothing that is none"
    for (name, parameters), answer in watched.answers.items():
        if name not in DRAWN:
            assert recorded(name, printed(name, parameters)) == recorded(name, answer), (name, parameters)


def test_tables_paint_the_figures(watched):
    watched.go(view="kernels")
    rows = watched.answer("kernels")["kernels"]
    for row, shown in zip(rows, watched.table("Kernels"), strict=True):
        assert (shown["kernel"], shown["time"], shown["runs"], shown["median"], shown["compiled in"], shown["line"]) == (
            row["name"], time(row["ns"]), count(row["runs"]), time(row["median_ns"]), time(row["compile_ns"]), row["line"])
    watched.go(view="lines")
    for row, shown in zip(watched.answer("lines")["lines"], watched.table("Lines of the program"), strict=True):
        assert (shown["line"], shown["time"], shown["runs"]) == (row["line"], time(row["ns"]), count(row["runs"]))
    watched.go(view="rules")
    for row, shown in zip(watched.answer("rules")["rules"], watched.table("Rules"), strict=True):
        assert (shown["rule"], shown["fired"], shown["text"]) == (row["rule"], count(row["fired"]), row["text"])
    watched.go(view="statistics")
    given = watched.answer("statistics")
    for row, shown in zip(given["passes"], watched.table("Compile time by pass"), strict=True):
        assert (shown["pass"], shown["time"], shown["runs"], shown["changed"], shown["rules"]) == (
            row["name"], time(row["ns"]), count(row["runs"]), count(row["changed"]), count(row["firings"]))
    for row, shown in zip(given["spans"], watched.table("Spans"), strict=True):
        assert (shown["span"], shown["count"], shown["time"]) == (row["name"], count(row["count"]), time(row["ns"]))
    assert {row["counter"]: row["value"] for row in watched.table("Counters")} == {name: count(value) for name, value in given["counters"].items()}
    watched.go(view="compare")
    given = watched.answer("compare")
    for row, shown in zip(given["kernels"], watched.table("Kernels of both"), strict=True):
        assert (shown["kernel"], shown["what"], shown["first"], shown["second"], shown["difference"]) == (
            row["name"], row["what"], time(row["ns"]), time(row["other_ns"]), signed(row["difference"], time))
    for row, shown in zip(given["spans"], watched.table("Spans of both"), strict=True):
        assert (shown["span"], shown["what"], shown["count"], shown["first"], shown["second"], shown["difference"]) == (
            row["name"], row["what"], f"{count(row['count'])} / {count(row['other_count'])}", time(row["ns"]), time(row["other_ns"]), signed(row["difference"], time))
    in_all = {row[""]: row for row in watched.table("In all")}
    for what, key, text in [("from begin to end", "ns", time), ("compiling", "compile_ns", time), ("in kernels", "kernel_ns", time), ("launches", "launches", count),
                            ("memory at the peak", "peak", size)]:
        one, other = given["one"][key], given["other"][key]
        assert (in_all[what]["first"], in_all[what]["second"], in_all[what]["difference"]) == (text(one), text(other), signed(other - one, text))
    for row, shown in zip(given["memory"], watched.table("Memory of both"), strict=True):
        assert (shown["kind"], shown["first"], shown["second"]) == (row["kind"], size(row["bytes"]), size(row["other_bytes"]))


def test_the_kernel_pane_paints_the_figures(watched):
    watched.go(view="kernel", kernel=0)
    kernel = watched.answer("kernel")
    facts = watched.facts()
    assert facts["runs"] == count(kernel["runs"])
    assert facts["time"].startswith(f"{time(kernel['ns'])} in all, {time(kernel['median_ns'])} median")
    assert facts["compiled in"] == time(kernel["compile_ns"])
    for text in kernel["texts"]:
        watched.page.locator("[role=tab]").nth(kernel["texts"].index(text)).click()
        assert watched.page.locator("[role=tabpanel]").text_content().strip() == text["text"].strip(), text["kind"]


def test_the_kernel_pane_says_why(watched, printed):
    of = next(k["kernel"] for k in printed("kernels", [])["kernels"] if {"decisions", "alternatives", "applied"} <= {
        name for name, value in printed("kernel", [("kernel", str(k["kernel"]))]).items() if value})
    watched.go(view="kernel", kernel=of)
    kernel = watched.answer("kernel")
    for row, shown in zip(kernel["decisions"], watched.table("Decisions"), strict=True):
        assert (shown[""], shown["value"], shown["because"], shown["line"]) == ("staged" if row["staged"] else "fused", row["value"], row["reason"], row["line"])
    for row, shown in zip(kernel["alternatives"], watched.table("Alternatives"), strict=True):
        assert (shown[""], shown["plan"], shown["cycles"]) == ("chosen" if row["chosen"] else "", row["plan"], count(int(rounded(row["cycles"], 0))))
    assert watched.page.locator("#main .body > ul li").all_text_contents() == kernel["applied"]


def test_the_code_and_the_roofline_paint_the_figures(watched, printed):
    of = printed("kernels", [])["kernels"][0]["kernel"]   # that took longest
    watched.go(view="kernel", kernel=of)
    code, roof = watched.answer("code"), watched.answer("roofline")
    assert code["loops"]
    for loop, shown in zip(code["loops"], watched.table("Loops"), strict=True):
        assert shown["loop"].strip() == f"{loop['loop']}{' hot' if loop['hot'] else ''}"
        assert (shown["lines"], shown["instructions"], shown["cycles"], shown["chain"], shown["in, out"]) == (
            f"{loop['first']} to {loop['last']}", count(loop["instructions"]), rounded(loop["cycles"], 1), rounded(loop["chain"], 1),
            f"{size(loop['loaded'])}, {size(loop['stored'])}")
        assert shown["ports"] == ", ".join(f"{port['port']} {rounded(port['cycles'], 1)}" for port in loop["ports"] if port["cycles"] >= 0.05)
    rows = watched.page.locator(".listing .part > div")
    sync_api.expect(rows).to_have_count(len(code["lines"]))
    for line, shown in zip(code["lines"], rows.all_text_contents(), strict=True):
        assert shown.startswith(f"{line['line']:5} {line['registers']} ")
        words = shown[7 + len(line["registers"]):].strip()
        said = line["text"].strip() + (f";{line['latency']} {line['port']}{line['frame']}" if line["port"] else "")
        assert re.sub(r"\s", "", words) == re.sub(r"\s", "", said)
    assert watched.page.locator(".registers button").all_text_contents() == [register["name"] for register in code["registers"]]
    words = watched.page.locator("figure svg").get_attribute("aria-label")
    precise = f"{roof['intensity']:#.3g}".rstrip(".")
    assert f"{precise} FLOP per byte; measured {rate(roof['flops'] / roof['measured_seconds'], 'FLOP/s')} (dot)" in words
    assert words.removeprefix("Roofline: ") == watched.page.locator("figcaption").text_content()


def test_the_pass_pane_paints_the_figures(watched, printed):
    of = a_pass_with_rules(printed)
    signs = {"added": "+", "removed": "−", "same": " "}
    lines = lambda diff: [f"⋯ {count(line['count'])} lines the same" if line["kind"] == "skipped" else
                          f"{'' if line['before'] is None else line['before']}{'' if line['after'] is None else line['after']}{signs[line['kind']]}{line['text']}" for line in diff]
    watched.go(view="pass", **{"pass": of})
    given, facts = watched.answer("pass"), watched.facts()
    assert watched.page.locator("#main h1").text_content() == f"{given['name']} of {given['subject']}"
    assert (facts["took"], facts["size"]) == (time(given["ns"]), f"{count(given['size_before'])} → {count(given['size_after'])}")
    assert facts.get("afterwards", "") == given["afterwards"] and facts.get("line", "") == given["line"]
    for rule, shown in zip(given["rules"], watched.table("Rules that fired"), strict=True):
        assert (shown["rule"], shown["fired"], shown["proof"], shown["source"]) == (rule["rule"], count(rule["count"]), rule["proof"] or "none known", rule["source"])
    assert watched.differences() == lines(given["diff"])
    for side in ("before", "after"):
        watched.go(view="pass", **{"pass": of}, mode=side)
        assert watched.page.locator("#main .code").text_content() == given[side]
    watched.go(view="pass", **{"pass": of}, mode="rewrites", step=0)
    given, facts = watched.answer("firing"), watched.facts()
    assert f"1 of {count(given['total'])}" in watched.page.locator("#main .body > .row").text_content()
    assert {name: facts[name] for name in ("rule", "text", "source", "before", "after")} == {name: given[name] for name in ("rule", "text", "source", "before", "after")}
    assert watched.differences() == lines(given["diff"])


def test_results_and_the_tree_paint_the_figures(watched):
    watched.go(view="search", text="exp2")
    given = watched.answer("search")
    assert watched.page.locator("#main h1").text_content() == f"{count(given['total'])} places with ‘exp2’"
    assert given["results"]
    number = lambda value: "" if value is None else str(value)
    for row, shown in zip(given["results"], watched.table("Results"), strict=True):
        assert shown == {"kind": row["kind"], "what": row["text"], **{name: number(row[name]) for name in ("realization", "pass", "kernel")}}
    items = watched.page.locator("#tree > li > .item")
    passes = lambda r: f"{count(r['passes'])} {'pass' if r['passes'] == 1 else 'passes'} " if r["passes"] else ""
    for run, name, more in zip(watched.answer("realizations")["realizations"], items.locator(".name").all_text_contents(),
                               items.locator(".more").all_text_contents(), strict=True):
        assert name == f"{run['kind']} {run['realization']}{': ' if run['line'] else ''}{run['line']}"
        assert more == f"{'failed ' if run['failed'] else ''}{passes(run)}{time(run['ns'])}"


def test_canvases_paint_names_and_figures_of_the_json(watched):
    watched.go(view="lines")
    watched.page.evaluate("window.painted = []")
    watched.go(view="timeline", realization=0)
    watched.page.locator("#main canvas").first.focus()
    watched.page.keyboard.press("+")
    watched.settle()
    given, memory = watched.answer("timeline"), watched.answer("memory")
    names = {span["detail"] or span["name"] for track in given["tracks"] for span in track["spans"]}
    names |= {f"{span['merged']} spans" for track in given["tracks"] for span in track["spans"] if span["merged"] > 1}
    names |= {f"{track['name']} (process {track['process']})" for track in given["tracks"]}
    texts = watched.texts()
    about_memory = [text for text in texts if text.startswith("memory of realization")]
    assert about_memory[-1].startswith(f"memory of realization 0: {memory['steps']} steps, peak {size(memory['peak']['bytes'])} at step {memory['peak']['step']};")
    cut = {text for text in texts if text.endswith("…")}
    ticks = {text for text in texts if re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", text)}
    strange = set(texts) - names - cut - ticks - set(about_memory)
    assert not strange
    assert all(any(name.startswith(text[:-1]) for name in names) for text in cut)
    assert names & set(texts), "at least one span is wide enough for its name"


def test_a_graph_paints_the_labels_of_the_json(watched, printed):
    of = a_pass_with_rules(printed)
    watched.page.evaluate("window.painted = []")
    watched.go(view="pass", **{"pass": of}, mode="graph")
    watched.page.locator("#main canvas").first.focus()
    for _ in range(10):   # until there is room for labels
        watched.page.keyboard.press("+")
        watched.settle()
        if watched.texts():
            break
    labels = {node["label"] for node in printed("graph", [("pass", of), ("side", "both")])["nodes"]}
    shown = {text for text in watched.texts() if not text.endswith("…")}
    assert shown & labels and not shown - labels
