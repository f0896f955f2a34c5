"""The README's Python, run as it is printed."""
import contextlib
import io
import re
from pathlib import Path


def test_readme_prints_what_it_says():
    text = (Path(__file__).parents[2] / "README.md").read_text()
    code, printed = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.S).groups()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert out.getvalue() == printed
