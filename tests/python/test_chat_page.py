"""The chat page in a real browser, without a display: Chromium (Debian: chromium) through playwright."""
import re
import shutil
import subprocess

import pytest

pytest.importorskip("openai")
sync_api = pytest.importorskip("playwright.sync_api")
from test_serve import fake_server  # noqa: E402

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def address():
    process = subprocess.Popen([fake_server()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.stdin.close()
    assert process.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as p:
        with p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as one:
            yield one


@pytest.fixture()
def page(browser, address):
    context = browser.new_context(viewport={"width": 1100, "height": 760})
    one = context.new_page()
    one.problems = []
    one.on("pageerror", lambda error: one.problems.append(str(error)))
    one.on("console", lambda m: one.problems.append(m.text) if m.type == "error" else None)
    one.on("request", lambda r: one.problems.append(r.url) if not r.url.startswith(address) else None)
    one.goto(address)
    sync_api.expect(one.locator("#model")).to_have_text("fake")
    yield one
    assert one.problems == []
    context.close()


def say(page, text):
    page.locator("#input").fill(text)
    page.keyboard.press("Enter")


def answered(page, count=1):
    sync_api.expect(page.locator("article.assistant")).to_have_count(count)
    sync_api.expect(page.locator("article.running")).to_have_count(0, timeout=20000)
    return page.locator("article.assistant").last


MARKDOWN = (r"SAY # Title\n\nSome **bold**, *slanted* and `code`, [a link](https://example.org/).\n\n"
            r"- one\n- two\n  1. inner\n\n> quoted\n\n```python\nprint('<b>')\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")


def test_answers_are_shown_as_markdown(page, tmp_path):
    say(page, MARKDOWN)
    body = answered(page).locator(".body")
    for selector, text in [("h2", "Title"), ("strong", "bold"), ("em", "slanted"), ("p code", "code"),
                           ("ul li ol li", "inner"), ("blockquote", "quoted"), ("pre code", "print('<b>')"),
                           ("figcaption span", "python"), ("td >> nth=1", "2")]:
        sync_api.expect(body.locator(selector).first).to_have_text(text)
    assert body.locator("a").get_attribute("rel") == "noopener noreferrer nofollow"
    assert "tokens" in page.locator("#rate").inner_text()
    page.screenshot(path=tmp_path / "light.png")
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.screenshot(path=tmp_path / "dark.png")


def test_what_a_model_writes_never_becomes_markup(page):
    say(page, r"SAY <img src=x onerror=alert(1)><script>alert(2)</script> [x](javascript:alert(3)) "
              r"[y](data:text/html,z)\n\n```<b>\n</code><img src=x>\n```")
    body = answered(page).locator(".body")
    assert body.locator("img, script, a").count() == 0
    assert "<img src=x onerror=alert(1)>" in body.inner_text()


def test_stop_regenerate_and_edit(page):
    say(page, "LONG 100000")
    sync_api.expect(page.locator("article.assistant .body")).to_have_text(re.compile("(word ){5}"))
    page.keyboard.press("Escape")
    first = answered(page)
    sync_api.expect(page.locator("#status")).to_have_text("Stopped.")
    assert first.locator(".error").count() == 0
    page.get_by_role("button", name="Edit the message").click()
    page.get_by_role("textbox", name="Edit the message").fill("RANDOM")
    page.keyboard.press("Enter")
    text = answered(page).locator(".body").inner_text()
    assert len(text) == 16
    page.get_by_role("button", name="Answer again").click()
    sync_api.expect(page.locator("article.assistant .body")).to_have_text(re.compile(f"^(?!{text})[a-h]{{16}}$"))
    say(page, "BREAK")
    sync_api.expect(page.locator("article .error")).to_have_text("the fake broke")


def test_conversations_and_settings_stay(page):
    say(page, "SAY first")
    answered(page)
    page.keyboard.press("Alt+n")
    say(page, "SAY second")
    answered(page)
    page.locator("#open-settings").click()
    page.get_by_label("Temperature").fill("0.3")
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_role("button", name="Done").click()
    page.reload()
    rows = page.locator("#conversations li")
    sync_api.expect(rows).to_have_count(2)
    rows.nth(1).get_by_role("button").first.click()
    sync_api.expect(page.locator("article.assistant .body")).to_have_text("first")
    with page.expect_request("**/v1/chat/completions") as asked:
        say(page, "SAY third")
    body = asked.value.post_data_json
    assert body["temperature"] == 0.3 and body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    answered(page, 2)
    rows.nth(0).get_by_role("button", name="Delete").click()
    sync_api.expect(rows).to_have_count(1)


def test_keys_alone_do(page):
    page.keyboard.type("SAY typed")
    page.keyboard.press("Enter")
    sync_api.expect(answered(page).locator(".body")).to_have_text("typed")
    page.keyboard.press("ArrowUp")
    sync_api.expect(page.get_by_role("textbox", name="Edit the message")).to_have_value("SAY typed")
    page.keyboard.press("Escape")
    unnamed = page.evaluate("""() => [...document.querySelectorAll('button, input, textarea')].filter(e =>
        !e.textContent.trim() && !e.getAttribute('aria-label') && !e.labels?.length).map(e => e.outerHTML)""")
    assert unnamed == []
