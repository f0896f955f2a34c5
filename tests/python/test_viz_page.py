"""The page of `weft viz` in a real browser, without a display: Chromium (Debian: chromium) through playwright."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

sync_api = pytest.importorskip("playwright.sync_api")
ROOT = pathlib.Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
              pytest.mark.skipif(not IMAGES.exists(), reason="dataset-fashion-mnist is not installed")]
MARKUP = "<img src=x onerror=alert(1)>"


def weft():
    found = list(ROOT.glob("build/*/weft"))
    if not found:
        pytest.skip("the target weft is not built")
    return str(max(found, key=lambda path: path.stat().st_mtime))


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Steps of Fashion-MNIST, by a program whose words are markup."""
    folder = tmp_path_factory.mktemp("viz")
    file = str(folder / "a.weftviz")
    subprocess.run([weft(), "train", "fashion-mnist", "--epochs", "1", "--limit", "1024", "--save", str(folder / f"{MARKUP}.st")],
                   env={**os.environ, "WEFT_VIZ": "1", "WEFT_VIZ_FILE": file}, check=True, stdout=subprocess.DEVNULL)
    return file


@pytest.fixture(scope="module")
def address(recording):
    process = subprocess.Popen([weft(), "viz", recording, "--no-browser", "--json"], stdout=subprocess.PIPE, text=True)
    yield json.loads(process.stdout.readline())["address"]
    process.terminate()
    assert process.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as p:
        with p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as one:
            yield one


def opened(browser, address, scheme="light", where=""):
    context = browser.new_context(viewport={"width": 1400, "height": 860}, color_scheme=scheme)
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda m: page.problems.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: page.problems.append(r.url) if not r.url.startswith(address.split("#")[0]) else None)
    page.on("dialog", lambda d: (page.problems.append("a dialog"), d.dismiss()))
    page.goto(address + where)
    return page


@pytest.fixture(params=["light", "dark"])
def page(request, browser, address):
    one = opened(browser, address, request.param)
    sync_api.expect(one.locator("#tree li").first).to_be_visible()
    yield one
    assert one.problems == []
    one.context.close()


def comes_true(page, script, seconds=20):
    """The page's policy forbids playwright's own waiting for scripts."""
    end = time.time() + seconds
    while not page.evaluate(script):
        assert time.time() < end, script
        time.sleep(0.05)


def drawn(page):
    comes_true(page, "performance.getEntriesByName('graph.painted').length > 0")


def test_the_token_leaves_the_address(page):
    assert "token" not in page.evaluate("location.href")
    page.reload()
    sync_api.expect(page.locator("#tree li").first).to_be_visible()


def test_without_the_token_nothing_is_shown(browser, address):
    page = opened(browser, address.split("#")[0])
    sync_api.expect(page.locator("[role=alert]")).to_contain_text("API key")
    assert page.locator("#tree li").count() == 0


def test_names_never_become_markup(page):
    sync_api.expect(page.locator("#session")).to_contain_text(MARKUP)
    assert page.locator("img").count() == 0


def test_every_view_opens(page, tmp_path):
    for name, expected in [("Graph", "canvas"), ("Timeline", "canvas >> nth=0"), ("Kernels", "td.number >> nth=0"), ("Lines", "h1"),
                           ("Rules", "td >> nth=0"), ("Statistics", "td >> nth=0")]:
        page.locator("#tabs button", has_text=name).click()
        sync_api.expect(page.locator(f"#main {expected}")).to_be_visible()
        assert page.locator("#main [role=alert]").count() == 0
        page.screenshot(path=tmp_path / f"{name}.png")


def test_the_keyboard_reaches_everything(page, tmp_path):
    keys = page.keyboard
    drawn(page)
    sync_api.expect(page.locator("#tree")).to_be_focused()
    for _ in range(100):   # to the first pass over a kernel
        keys.press("ArrowDown")
        if page.locator("[aria-selected=true] > .item", has_text="lower.").count():
            break
        if page.locator("[aria-selected=true][aria-expanded=false]").count():
            keys.press("Enter")
            time.sleep(0.1)
    sync_api.expect(page.locator("#main h1")).to_contain_text("lower.")
    keys.press("g")
    comes_true(page, "location.hash.includes('mode=graph')")
    keys.press("s")
    comes_true(page, "location.hash.includes('mode=diff')")
    keys.press("c")
    comes_true(page, "location.hash.includes('view=kernel')")
    sync_api.expect(page.locator("[role=tablist]")).to_be_visible()
    page.screenshot(path=tmp_path / "kernel.png")
    for key, view in [("t", "timeline"), ("k", "kernels"), ("l", "lines"), ("u", "rules"), ("i", "statistics")]:
        keys.press(key)
        comes_true(page, f"location.hash.includes('view={view}')")
    keys.press("?")
    sync_api.expect(page.locator("#help")).to_be_visible()
    keys.press("Escape")
    keys.press("/")
    keys.type("add")
    keys.press("Enter")
    sync_api.expect(page.locator("#main h1")).to_contain_text("add")


def test_a_graph_is_walked_through_by_keys(page):
    drawn(page)
    page.locator("#main canvas").focus()
    page.keyboard.press("ArrowDown")
    sync_api.expect(page.locator("aside h1")).to_be_visible()
    first = page.locator("aside h1").text_content()
    page.keyboard.press("ArrowDown")
    comes_true(page, f"document.querySelector('aside h1').textContent !== {json.dumps(first)} || document.querySelector('aside').textContent.includes('Users') === false")
    page.keyboard.press("r")   # groups by line
    comes_true(page, "document.querySelector('#main select').value === 'line'")


def test_the_edges_of_the_chosen_node_are_lit(page):
    boxes = []

    def noted(route):
        answer = route.fetch()
        boxes.append(answer.json())
        route.fulfill(response=answer)
    page.route("**/api/box?**", noted)
    drawn(page)
    page.locator("#main canvas").focus()
    page.keyboard.press("ArrowDown")
    sync_api.expect(page.locator("aside h1")).to_be_visible()
    assert any(box["users"] for box in boxes)
    lit = """(() => {
        const canvas = document.querySelector('#main canvas'), probe = document.createElement('canvas').getContext('2d');
        probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--changed');
        probe.fillRect(0, 0, 1, 1);
        const [r, g, b] = probe.getImageData(0, 0, 1, 1).data, { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) count += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12;
        return count > 10;
    })()"""
    comes_true(page, lit)
    swatch = page.locator("aside h2", has_text="Users").locator(".bar")
    sync_api.expect(swatch).to_be_visible()


def test_the_chosen_node_moves_with_its_graph(page):
    """As where a large one is laid out in full."""
    fine, boxes = [], []

    def drawing(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "fine": bool(fine)})

    def box(route):
        answer = route.fetch()
        boxes.append(answer.json()["box"])
        route.fulfill(response=answer, json={**answer.json(), "label": "moved" if fine else "before"})
    page.route("**/api/drawing?**", drawing)
    page.route("**/api/box?**", box)
    page.evaluate("location.hash = 'view=graph&realization=1'")
    sync_api.expect(page.locator("#main .head")).to_contain_text("being laid out")
    page.locator("#main canvas").focus()
    page.keyboard.press("ArrowDown")
    sync_api.expect(page.locator("aside h1")).to_have_text("before")
    fine.append(True)
    sync_api.expect(page.locator("aside h1")).to_have_text("moved")
    assert len(set(boxes)) == 1


def test_names_of_slopes_never_meet(page):
    """However near each other levels of memory are."""
    comes_true(page, "document.body !== null")
    names = page.evaluate("""async () => {
        const { roofline } = await import('./kernel.js');
        const level = (name, rate) => ({ name, bytes: 1, bytes_per_second: rate });
        const figure = roofline({ flops: 1e6, bytes: 1e6, intensity: 1, measured_seconds: 1e-5, bound: 'L3', limits: { threads: 2, source: '', flops_per_second: 1e12,
            levels: [level('L1', 4e11), level('L2', 3e11), level('L3', 2.9e11), level('memory', 2.8e11)] } });
        document.querySelector('#main').replaceChildren(figure);
        return [...figure.querySelectorAll('text.small')].map((text) => { const { x, y, width, height } = text.getBBox(); return [x, y, width, height]; });
    }""")
    assert len(names) == 4
    for i, (x, y, width, height) in enumerate(names):
        for other_x, other_y, other_width, other_height in names[:i]:
            apart = x >= other_x + other_width or other_x >= x + width or y >= other_y + other_height or other_y >= y + height
            assert apart, names


def test_from_a_line_to_its_hot_loop_in_four_clicks(page, recording):
    page.locator("#tabs button", has_text="Lines").click()
    page.locator("#main td button").first.click()
    took = {k["kernel"]: k["ns"] for k in asked(recording, "kernels", count=5000)["kernels"]}
    own = [line["kernels"] for line in asked(recording, "lines")["lines"]]
    assert len(own[0]) > 1 and all(kernels == sorted(kernels, key=lambda k: -took[k]) for kernels in own)
    slowest = own[0][0]
    sync_api.expect(page.locator("#main h1")).to_contain_text(f"kernel {slowest}:")
    sync_api.expect(page.locator(".listing")).to_contain_text("mm")
    page.locator("table[aria-label=Loops] tr", has=page.locator(".hot-name")).locator("button.link").click()
    sync_api.expect(page.locator(".listing .part > .hot").first).to_be_in_viewport()
    sync_api.expect(page.locator("svg[role=img]")).to_have_attribute("aria-label", re.compile("Roofline: .*measured"))
    assert page.locator("table[aria-label=Decisions] tbody tr").count() > 0   # the reasons


def asked(recording, view, **parameters):
    words = [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
    return json.loads(subprocess.run([weft(), "viz", recording, "--text", view, "--json", *words], check=True, capture_output=True).stdout)


def test_passes_lead_to_the_one_before_and_the_next(page, recording):
    largest = max(asked(recording, "passes", count=5000)["passes"], key=lambda p: p["size_after"])["pass"]
    given = asked(recording, "pass", **{"pass": largest})
    assert given["previous"] is not None and given["next"] is not None
    at = lambda number: comes_true(page, f"new URLSearchParams(location.hash.slice(1)).get('pass') === '{number}'")
    page.evaluate(f"location.hash = 'view=pass&pass={largest}&mode=graph'")
    step = lambda to: page.locator(f"#main .head [data-to={to}]")
    step("next").click()
    at(given["next"])
    step("previous").click()
    at(largest)
    step("previous").click()
    at(given["previous"])
    page.keyboard.press("n")
    at(largest)
    page.keyboard.press("p")
    at(given["previous"])
    assert "mode=graph" in page.evaluate("location.hash")
    first = given["previous"]
    while (before := asked(recording, "pass", **{"pass": first})["previous"]) is not None:
        first = before
    page.evaluate(f"location.hash = 'view=pass&pass={first}'")
    sync_api.expect(step("previous")).to_be_disabled()
    sync_api.expect(step("next")).to_be_enabled()
    page.keyboard.press("p")
    sync_api.expect(page.locator("#status")).to_have_text("This is the first pass.")


def test_nothing_moves_under_a_click_when_an_answer_comes(page, recording):
    number = max(asked(recording, "passes", count=5000)["passes"], key=lambda p: p["firings"])["pass"]
    held = []
    page.route("**/api/pass?**", lambda route: held.append(route))
    page.evaluate(f"location.hash = 'view=pass&pass={number}&mode=graph'")
    drawn(page)
    sync_api.expect(page.locator("#main .head select")).to_be_visible()   # what the graph is grouped by
    head = page.locator("#main .head button")
    places = [one.bounding_box() for one in head.all()[:7]]
    held[0].continue_()
    sync_api.expect(page.locator("#main h1")).not_to_have_text(f"pass {number}")
    assert [one.bounding_box() for one in head.all()[:7]] == places


def test_the_tree_opens_at_what_is_shown(page, recording):
    shown = page.locator("#tree [aria-selected=true]")
    at = page.locator("#tree [aria-selected=true] > .item")
    passes = asked(recording, "passes", count=5000)["passes"]
    last = max((p for p in passes if p["changed"] and p["kernel"] is not None), key=lambda p: p["pass"])   # of a realization that is closed
    sync_api.expect(page.locator("#tree > li[aria-expanded=true]")).to_have_count(1)
    page.evaluate(f"location.hash = 'view=pass&pass={last['pass']}'")
    sync_api.expect(at).to_be_in_viewport()
    sync_api.expect(at.locator(".name")).to_have_text(last["name"])
    sync_api.expect(page.locator("#tree li[aria-expanded=true]", has=page.locator("[aria-selected=true]"))).to_have_count(2)   # its realization and kernel
    one = next(p["kernel"] for p in passes if p["kernel"] is not None and p["realization"] not in (0, last["realization"]))
    page.evaluate(f"location.hash = 'view=kernel&kernel={one}'")
    sync_api.expect(at.locator(".name")).to_have_text(next(p["subject"] for p in passes if p["kernel"] == one))
    sync_api.expect(at).to_be_in_viewport()
    same = next(p["pass"] for p in passes if not p["changed"] and p["kernel"] is not None)
    page.evaluate(f"location.hash = 'view=pass&pass={same}'")   # not in the tree: nothing is marked
    sync_api.expect(shown).to_have_count(0)
    page.go_back()
    sync_api.expect(shown).to_have_count(1)
    page.evaluate("location.hash = 'view=rules'")
    page.locator("#tree > li[aria-expanded=true] > .item .twist").last.click()   # closed by hand, and led to again
    page.evaluate(f"location.hash = 'view=pass&pass={last['pass']}'")
    sync_api.expect(at).to_be_in_viewport()


def test_a_search_replaces_the_one_before_and_leads_to_what_it_finds(page):
    for text in ("add", "mul"):   # from the results of the first
        page.locator("#tree").focus()
        page.keyboard.press("/")
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        sync_api.expect(page.locator("#main h1")).to_contain_text(f"‘{text}’")
    page.locator("#main td button").first.click()
    comes_true(page, "!location.hash.includes('view=search')")


def test_a_node_is_shown_before_its_texts_are_there(page):
    held = []

    def brief(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "label": "brief", "text": "", "shape": "", "complete": False})
    page.route("**/api/box?**", lambda route: brief(route) if "without_waiting" in route.request.url else held.append(route))
    drawn(page)
    page.locator("#main canvas").focus()
    page.keyboard.press("ArrowDown")
    title = page.locator("aside h1")
    sync_api.expect(title).to_have_text("brief")
    assert page.locator("aside pre").count() == 0
    held[0].continue_()
    sync_api.expect(title).not_to_have_text("brief")
    sync_api.expect(page.locator("aside pre")).to_be_visible()


def test_a_realization_that_was_never_scheduled_shows_what_was_compiled(browser, recording, tmp_path):
    """Of a program that was killed while it compiled its largest realization."""
    whole = pathlib.Path(recording).read_bytes()
    most = max(asked(recording, "realizations")["realizations"], key=lambda r: r["compile_ns"])["realization"]
    file = str(tmp_path / "cut.weftviz")

    def compiled(cut):
        pathlib.Path(file).write_bytes(whole[:cut])
        rows = asked(file, "realizations")["realizations"]
        return rows[most] if len(rows) > most else {"steps": -1, "passes": 0}
    row = next(row for row in (compiled(len(whole) * part // 200) for part in range(1, 200)) if row["steps"] == 0 and row["passes"] > 0)
    own = [p for p in asked(file, "passes", realization=most, count=5000)["passes"] if p["kernel"] is None]
    largest = max(own, key=lambda p: p["size_after"])
    process = subprocess.Popen([weft(), "viz", file, "--no-browser", "--json"], stdout=subprocess.PIPE, text=True)
    page = opened(browser, json.loads(process.stdout.readline())["address"], where=f"&view=graph&realization={row['realization']}")
    sync_api.expect(page.locator("#main .head")).to_contain_text(f"{largest['name']}: ")
    text = [p["pass"] for p in asked(file, "passes", count=5000)["passes"] if p["name"].startswith("codegen.") and p["name"] != "codegen.select"][-1]   # from machine code to machine code
    page.evaluate(f"location.hash = 'view=pass&pass={text}&mode=graph'")
    sync_api.expect(page.locator("#main .head")).to_contain_text("not a graph")
    page.keyboard.press("t")
    sync_api.expect(page.locator("#main canvas").first).to_be_visible()
    assert page.locator("[role=alert]").count() == 0
    assert page.problems == []   # no refusal in the console
    process.terminate()
    process.wait(timeout=30)


def test_a_long_strip_is_seen_where_it_can_be_read(page):
    levels = []

    def long(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "width": 1e5, "height": 300})
    page.route("**/api/drawing?**", long)
    page.on("request", lambda r: levels.append(int(re.search(r"level=(-?\d+)", r.url)[1])) if "/api/tile" in r.url else None)
    page.evaluate("location.hash = 'view=graph&realization=1'")
    end = time.time() + 20
    while not levels and time.time() < end:
        page.wait_for_timeout(50)
    assert levels[-1] <= 1   # boxes with labels
    page.keyboard.press(" ")
    while levels[-1] < 6 and time.time() < end:
        page.wait_for_timeout(50)
    assert levels[-1] >= 6   # all of it


@pytest.fixture
def kernel(page, recording):
    """The kernel that took longest, of those with a loop."""
    said = json.loads(subprocess.run([weft(), "viz", recording, "--text", "kernels", "--json"], check=True, capture_output=True).stdout)
    number = said["kernels"][0]["kernel"]
    page.evaluate(f"location.hash = 'view=kernel&kernel={number}'")
    sync_api.expect(page.locator(".listing .part > div").first).to_be_visible()
    return number


def code_of(recording, kernel):
    return json.loads(subprocess.run([weft(), "viz", recording, "--text", "code", "--param", f"kernel={kernel}", "--json"], check=True,
                                     capture_output=True).stdout)


def test_a_registers_life_is_lit(page, kernel, recording, tmp_path):
    code = code_of(recording, kernel)
    rows = page.locator(".listing .part > div")
    sync_api.expect(rows).to_have_count(code["total"])   # of a long one the rest comes a little later
    line = next(i for i, row in enumerate(code["lines"]) if "v" in row["registers"] and rows.nth(i).locator("[data-register]").count())
    rows.nth(line).locator("[data-register]").first.click()
    alive = page.evaluate("[...document.querySelectorAll('.listing .part > div')].map((row) => row.classList.contains('alive'))")
    lit = [i for i, on in enumerate(alive) if on]
    assert lit and any([first, last] == [lit[0], lit[-1]] for _, first, last in code["lives"])
    page.screenshot(path=tmp_path / "life.png", full_page=True)
    name = code["registers"][0]["name"]
    button = page.locator(".registers button", has_text=name).first
    button.focus()
    page.keyboard.press("Enter")
    sync_api.expect(button).to_have_attribute("aria-pressed", "true")


def test_control_flow_leads_to_the_code_and_back(page, kernel, recording, tmp_path):
    page.keyboard.press("f")
    comes_true(page, "location.hash.includes('view=graph') && location.hash.includes('kernel=')")
    drawn(page)
    sync_api.expect(page.locator("#main .head")).to_contain_text(f"{len(code_of(recording, kernel)['blocks'])} nodes")
    page.locator("#main canvas").focus()
    page.keyboard.press("ArrowDown")
    sync_api.expect(page.locator("aside h1")).to_contain_text("B0")
    page.screenshot(path=tmp_path / "flow.png")
    page.keyboard.press("Enter")
    comes_true(page, "location.hash.includes('view=kernel') && location.hash.includes('block=0')")
    sync_api.expect(page.locator(".listing .part > div").first).to_be_visible()


def test_long_texts_are_laid_out_where_they_are_seen(page, recording):
    asked = [weft(), "viz", recording, "--json", "--text"]
    kernels = json.loads(subprocess.run([*asked, "kernels"], check=True, capture_output=True).stdout)["kernels"]
    kernel = max(kernels, key=lambda k: k["code_bytes"])["kernel"]
    page.evaluate(f"location.hash = 'view=kernel&kernel={kernel}'")
    rows = page.locator(".listing .part > div")
    sync_api.expect(rows).to_have_count(len(code_of(recording, kernel)["lines"]))
    seen = "[...document.querySelectorAll('.listing .part > div')].at(-1).checkVisibility({ contentVisibilityAuto: true })"
    comes_true(page, f"!{seen}")
    rows.last.scroll_into_view_if_needed()
    sync_api.expect(rows.last).to_be_in_viewport()
    comes_true(page, seen)
    texts = json.loads(subprocess.run([*asked, "kernel", "--param", f"kernel={kernel}"], check=True, capture_output=True).stdout)["texts"]
    for i, one in enumerate(texts):
        page.locator("[role=tab]").nth(i).click()   # asks for it
        comes_true(page, f"document.querySelector('[role=tabpanel] pre').textContent.startsWith({json.dumps(one['text'][:60])})")
        assert page.locator("[role=tabpanel] pre").text_content() == one["text"]


def test_what_takes_long_is_seen_to_be_worked_on(page):
    release = []
    page.route("**/api/statistics**", lambda route: release.append(route))
    page.keyboard.press("i")
    sync_api.expect(page.locator("body.waiting")).to_be_attached()
    release[0].continue_()
    sync_api.expect(page.locator("#main td").first).to_be_visible()
    sync_api.expect(page.locator("body.waiting")).not_to_be_attached()


def test_a_program_that_runs_is_followed(browser, tmp_path):
    file = str(tmp_path / "b.weftviz")
    process = subprocess.Popen([weft(), "viz", file, "--no-browser", "--json", "--", weft(), "train", "fashion-mnist", "--epochs", "1", "--limit", "512"],
                               stdout=subprocess.PIPE, text=True)
    address = next(json.loads(line)["address"] for line in process.stdout if line.startswith('{"address"'))
    page = opened(browser, address)
    sync_api.expect(page.locator("#tree li").first).to_be_visible(timeout=30000)
    process.terminate()
    process.wait(timeout=30)
