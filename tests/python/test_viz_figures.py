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
    for row, shown in zip(given["memory"], watched.table("Memory of both"), strict=True):
        assert (shown["kind"], shown["first"], shown["second"]) == (row["kind"], size(row["bytes"]), size(row["other_bytes"]))


def test_the_kernel_pane_paints_the_figures(watched):
    watched.go(view="kernel", kernel=0)
    kernel = watched.answer("kernel")
    facts = dict(zip(*(watched.page.locator(f"#main dl.facts {part}").all_text_contents() for part in ("dt", "dd"))))
    assert facts["runs"] == count(kernel["runs"])
    assert facts["time"].startswith(f"{time(kernel['ns'])} in all, {time(kernel['median_ns'])} median")
    assert facts["compiled in"] == time(kernel["compile_ns"])
    for text in kernel["texts"]:
        watched.page.locator("[role=tab]").nth(kernel["texts"].index(text)).click()
        assert watched.page.locator("[role=tabpanel]").text_content().strip() == text["text"].strip(), text["kind"]


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
