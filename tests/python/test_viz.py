"""weft.viz: recordings within a program, as data, text and tables for notebooks."""
import html.parser
import json

import pytest

import weft
from weft import Tensor

FETCHES = ("src", "href", "action", "srcset", "data")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    with weft.viz.record(tmp_path_factory.mktemp("viz") / "a.weftviz") as made:
        x = Tensor.arange(4096).cast("float32").reshape(64, 64)
        (x @ x).exp2().sum(1).realize()
    return made


class Reader(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "img", "link", "iframe")
        assert not [name for name, _ in attributes if name in FETCHES or name.startswith("on")]
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_what_ran_is_there(recording):
    kernels = recording.view("kernels").data["kernels"]
    assert kernels and all(k["runs"] > 0 for k in kernels)
    assert "test_viz.py" in kernels[0]["line"]
    assert recording.view("session").data["processes"][0]["finished"]
    assert "code" in recording.views()


def test_what_is_outside_is_not(recording):
    before = recording.view("kernels").data["total"]
    (Tensor.arange(100).cast("float32") * 3).sum().realize()
    assert recording.view("kernels").data["total"] == before


def test_several_in_turn(tmp_path):
    for name in ("a", "b"):
        with weft.viz.record(tmp_path / name) as one:
            (Tensor.arange(1000).cast("float32") * 5).sum().realize()
        assert one.view("kernels").data["total"] > 0  # compiled again for each


def test_one_at_a_time(tmp_path):
    with weft.viz.record(tmp_path / "a"):
        with pytest.raises(ValueError, match="recorded to .*a already"):
            with weft.viz.record(tmp_path / "b"):
                pass
        Tensor.arange(3).sum().realize()
    assert weft.viz.Recording(tmp_path / "a").view("kernels").data["total"] > 0


@pytest.mark.parametrize("name", ["session", "realizations", "kernels", "kernel", "code", "passes", "memory", "timeline", "rules", "lines",
                                  "statistics", "roofline"])
def test_notebooks_get_tables_that_fetch_nothing(recording, name):
    own = {"kernel": 0} if name in ("kernel", "code", "roofline") else {"realization": 0} if name == "memory" else {}
    view = weft.viz.show(recording, name, **own)
    page = Reader(view._repr_html_())
    assert "table" in page.tags or "pre" in page.tags
    assert str(view)
    json.dumps(view.data)


def test_the_overview(recording, tmp_path):
    overview = weft.viz.show(recording.path)
    page = Reader(overview._repr_html_())
    assert page.tags.count("table") == 3
    assert "kernels" in "".join(page.words)
    runs = recording.view("kernels").data["kernels"][0]["runs"]
    assert f"{runs}" in page.words and f"{runs} ns" not in page.words
    assert "GFLOPS" in repr(overview)


def test_names_never_become_markup(tmp_path):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    folder.mkdir()
    source = "from weft import Tensor\ndef compute(): (Tensor.arange(50).cast('float32') * 7).sum().realize()\n"
    code = compile(source, str(folder / "<script>alert(2)<.py"), "exec")
    words = {}
    exec(code, words)
    with weft.viz.record(folder / "a") as made:
        words["compute"]()
    assert "<script>alert(2)<.py" in "".join(Reader(made._repr_html_()).words)


def test_errors_say_what_is_wrong(recording, tmp_path):
    with pytest.raises(Exception, match="did you mean kernels"):
        recording.view("kernls").data
    with pytest.raises(Exception, match="kernel is 99999"):
        recording.view("kernel", kernel=99999).data
    with pytest.raises(Exception, match="nothing"):
        weft.viz.show(tmp_path / "nothing").view("session").data
