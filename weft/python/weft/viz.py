"""Recordings of what weft compiles and runs, made and looked at; the command `weft viz FILE` shows all of one.

    with weft.viz.record("step.weftviz") as recording:
        train_step()
    weft.viz.show(recording)                          # in a notebook tables, else text
    weft.viz.show(recording, "code", kernel=0)        # machine code, registers, loops
    recording.view("kernels").data["kernels"][0]      # the same as data
"""
import html
import json
import os
from typing import Any

from weft._core import RecordingFile, start_recording, stop_recording

__all__ = ["Recording", "View", "record", "show"]

_ROWS = 200  # of a table in a notebook
_LETTERS = 200_000  # of a text there

_STYLE = """<style>
.weft-viz { font: 13px/1.45 system-ui, sans-serif; max-width: 100%; overflow-x: auto; }
.weft-viz table { border-collapse: collapse; margin: 4px 0 10px; }
.weft-viz th, .weft-viz td { padding: 2px 10px 2px 0; text-align: left; border-bottom: 1px solid #8885; vertical-align: top; }
.weft-viz td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.weft-viz pre { font: 12px/1.4 ui-monospace, monospace; max-height: 480px; overflow: auto; background: #8881; padding: 6px; margin: 2px 0 10px; }
.weft-viz h4 { margin: 8px 0 2px; }
.weft-viz .bar { display: inline-block; height: 8px; background: #1f5f99; vertical-align: middle; margin-right: 4px; }
</style>"""


class View:
    """What a view of a recording says: `data` as docs/viz.md describes it; str() for a terminal; tables in notebooks."""

    def __init__(self, recording: "Recording", name: str, parameters: dict[str, Any]):
        self._recording = recording
        self.name = name
        self.parameters = parameters

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self._recording._file().json(self.name, self.parameters))

    def __str__(self) -> str:
        return self._recording._file().text(self.name, self.parameters)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.name in ("code", "graph", "pass", "timeline"):  # lines that belong together
            return _page(self.name, f"<pre>{_escaped(str(self))}</pre>")
        return _page(self.name, _object(self.data))


class Recording:
    """A recording, of a file that is there or is being made."""

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        self._opened: RecordingFile | None = None
        self._recording = False

    def _file(self) -> RecordingFile:
        if self._opened is None:
            self._opened = RecordingFile(self.path)
        return self._opened

    def view(self, name: str, **parameters) -> View:
        """One of views(), with its parameters: view("pass", pass_=17), where _ ends Python's own words."""
        return View(self, name, {key.rstrip("_"): value for key, value in parameters.items()})

    def views(self) -> dict[str, str]:
        """Names of views, and what each shows."""
        return {view["name"]: view["doc"] for view in self.view("views").data["views"]}

    def __repr__(self) -> str:
        return f"<weft.viz.Recording {self.path!r}>"

    def _repr_html_(self) -> str:
        session = self.view("session").data
        first = session["processes"][0] if session["processes"] else {}
        facts = {"command": " ".join(first.get("command", [])), "device": first.get("device"), "machine": first.get("machine"),
                 "missing": "; ".join(missing["text"] for missing in session["missing"])}
        runs = [{**{key: run[key] for key in ("realization", "kind", "line", "steps")}, "ns": run["ns"], "compile_ns": run["compile_ns"],
                 "compiled kernels": len(run["compiled"])} for run in self.view("realizations", count=_ROWS).data["realizations"]]
        kernels = [{key: k[key] for key in ("kernel", "name", "share", "runs", "ns", "median_ns", "gflops", "gbytes", "line")}
                   for k in self.view("kernels", count=50).data["kernels"]]
        return _page("recording", _object(facts) + "<h4>kernels</h4>" + _table(kernels) + "<h4>realizations</h4>" + _table(runs))

    # ---- what record() gives to `with`

    def __enter__(self):
        if self._recording:
            return self
        self.path = start_recording(self.path)
        self._recording = True
        return self

    def __exit__(self, *exception):
        self._recording = False
        stop_recording()


def record(file: str | os.PathLike = "") -> Recording:
    """Records what is compiled and run within `with`; without a name to a new file of the state directory, as
    WEFT_VIZ=1 does. What was compiled before is compiled again where it is needed, so that there is something to see;
    functions that TinyJit has captured keep their kernels."""
    return Recording(file)


def show(recording: Recording | str | os.PathLike, view: str | None = None, **parameters) -> "View | Recording":
    """A recording's overview, or one of its views: what notebooks display. At a prompt, or by print(), text."""
    if not isinstance(recording, Recording):
        recording = Recording(recording)
    if view is None:
        return _Overview(recording.path)
    return recording.view(view, **parameters)


class _Overview(Recording):
    def __repr__(self) -> str:
        return "\n".join(str(self.view(name)) for name in ("session", "kernels", "realizations"))


# ---- HTML: a fragment by itself, without scripts, and nothing is fetched

def _escaped(value: object) -> str:
    text = str(value)
    return html.escape(text if len(text) <= _LETTERS else text[:_LETTERS] + " ...")


def _page(name: str, inside: str) -> str:
    return f'{_STYLE}<div class="weft-viz" data-view="{_escaped(name)}">{inside}</div>'


def _duration(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _cell(key: str, value: object) -> str:
    if key == "share" and isinstance(value, (int, float)):
        return f'<td class="number"><span class="bar" style="width:{min(max(value, 0), 1) * 60:.0f}px"></span>{value:.1%}</td>'
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        shown = _duration(value) if key == "ns" or key.endswith("_ns") else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
        return f'<td class="number">{shown}</td>'
    if isinstance(value, (list, dict)):
        text = json.dumps(value)
        return f"<td>{_escaped(text if len(text) < 200 else text[:200] + ' ...')}</td>"
    return f"<td>{'' if value is None else _escaped(value)}</td>"


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "<p>none</p>"
    columns = list(dict.fromkeys(key for row in rows for key in row))
    head = "".join(f"<th>{_escaped(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(_cell(column, row.get(column)) for column in columns)}</tr>" for row in rows[:_ROWS])
    more = f"<p>{len(rows) - _ROWS} more rows</p>" if len(rows) > _ROWS else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def _member(name: str, value: object) -> str:
    head = f"<h4>{_escaped(name)}</h4>"
    if isinstance(value, dict):
        return head + _object(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        if set(value[0]) == {"kind", "text"}:  # texts of a kernel
            return "".join(f"<h4>{_escaped(row['kind'])}</h4><pre>{_escaped(row['text'])}</pre>" for row in value)
        return head + _table(value)
    if isinstance(value, str) and "\n" in value:
        return f"{head}<pre>{_escaped(value)}</pre>"
    return ""


def _object(data: dict[str, Any]) -> str:
    nested = {name: _member(name, value) for name, value in data.items()}
    plain = "".join(f"<tr><th>{_escaped(name)}</th>{_cell(name, value)}</tr>" for name, value in data.items()
                    if not nested[name] and value not in ([], "", None))
    return (f"<table>{plain}</table>" if plain else "") + "".join(nested.values())
