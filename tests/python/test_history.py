"""tools/history: what it keeps, what it calls a change, what it draws."""
import html.parser
import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "history"
COMMON = {"group": "networks", "name": "a <step>", "limit": 0.5}


def run(*words, given="", fails=False):
    done = subprocess.run([sys.executable, str(TOOL), *map(str, words)], input=given, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def record(file, commit, *rows, machine="Zen 4"):
    text = "\n".join(json.dumps({**COMMON, **row}) for row in rows) + "\n" + json.dumps({"compared": 3})
    return run("record", "--file", file, "--commit", commit, "--machine", machine, given=text)


def test_keeps_rows_with_commit_and_machine(tmp_path):
    file = tmp_path / "new" / "history.jsonl"
    assert "1 rows of abc on Zen 4" in record(file, "abc", {"seconds": 1.0, "torch": 2.0})
    record(file, "def", {"seconds": 1.0})
    first, second = [json.loads(line) for line in file.read_text().splitlines()]
    assert first["commit"] == "abc" and first["machine"] == "Zen 4" and first["torch"] == 2.0 and "time" in first
    assert second["commit"] == "def" and second["name"] == COMMON["name"]


def test_names_the_machine_and_the_commit_itself(tmp_path):
    file = tmp_path / "history.jsonl"
    run("record", "--file", file, "--commit", "abc", given=json.dumps({**COMMON, "seconds": 1.0}))
    assert "CPUs" in json.loads(file.read_text())["machine"]


def test_changes_are_what_is_beyond_noise(tmp_path):
    file = tmp_path / "history.jsonl"
    record(file, "a", {"seconds": 1.00, "spread": 0.02})
    record(file, "b", {"seconds": 1.04, "spread": 0.02})  # below 5 %
    record(file, "c", {"seconds": 1.56, "spread": 0.02})
    record(file, "d", {"seconds": 0.78, "spread": 0.9})   # beyond no such noise
    lines = run("changes", "--file", file).splitlines()
    assert len(lines) == 1 and "1.50 times as slow" in lines[0] and "b to c" in lines[0]


def test_runs_of_one_commit_are_its_noise(tmp_path):
    file = tmp_path / "history.jsonl"
    record(file, "a", {"seconds": 1.0}, {"seconds": 1.4})
    record(file, "b", {"seconds": 1.5})
    assert run("changes", "--file", file) == "no changes beyond noise\n"


def test_a_slow_machine_is_no_change(tmp_path):
    file = tmp_path / "history.jsonl"
    record(file, "a", {"seconds": 1.0, "torch": 2.0})
    record(file, "b", {"seconds": 1.5, "torch": 3.0})
    record(file, "b", {"seconds": 9.0}, machine="Zen 5")  # another machine is another history
    assert run("changes", "--file", file) == "no changes beyond noise\n"
    record(file, "c", {"seconds": 1.5, "torch": 6.0})
    assert "2.00 times as fast" in run("changes", "--file", file)


def test_draws_a_page_of_one_file(tmp_path):
    file = tmp_path / "history.jsonl"
    record(file, "aaaa", {"seconds": 1.0, "torch": 2.0})
    record(file, "bbbb", {"seconds": 0.5, "torch": 2.0}, {"name": "other", "seconds": 2e-6})
    page = run("draw", "--file", file)
    tags, text = [], []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            tags.append((tag, dict(attributes)))

        def handle_data(self, data):
            text.append(data)
    Reader().feed(page)
    names = [tag for tag, _ in tags]
    assert names.count("svg") == 2 and names.count("polyline") == 3
    assert "a <step>" in text and "other" in text and "Zen 4" in text
    assert any("2.00 times faster" in t for t in text) and any("weft 500 ms, 100 % of the machine" in t for t in text)
    assert not any({"src", "href"} & set(attributes) for _, attributes in tags), "nothing is loaded"
    assert "http" not in page and "prefers-color-scheme: dark" in page


def test_errors_say_what_to_do(tmp_path):
    assert "there is no" in run("draw", "--file", tmp_path / "none", fails=True)
    assert "line 1 is no JSON" in run("record", "--file", tmp_path / "f", given="weft 1.0", fails=True)
    assert "nothing to record" in run("record", "--file", tmp_path / "f", given='{"compared": 1}', fails=True)
    (tmp_path / "bad").write_text('{"name": "x"}\n')
    assert "line 1 of" in run("changes", "--file", tmp_path / "bad", fails=True)
