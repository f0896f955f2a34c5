"""What the compiler would do with tensors: weft.explain_passes()."""
import pytest

import weft
from weft import Tensor


def expression() -> Tensor:
    return (Tensor([[1.0, 2.0], [3.0, 4.0]]) + 1).sum(axis=0)


def test_goes_from_tensors_to_code():
    records = weft.explain_passes(expression())
    stages = list(dict.fromkeys(r.name.split(".")[0] for r in records))
    assert stages[:4] == ["normalise", "schedule", "optimize", "lower"]
    assert stages[4] in ("codegen", "render")
    assert all(isinstance(r, weft.PassRecord) and r.us >= 0 and r.before == r.after == "" for r in records)
    number = records[0]
    assert number.name == "normalise.number" and number.subject == "values"
    assert number.changed and number.size_before == number.size_after > 2
    assert repr(number).startswith("<normalise.number of values: ")
    assert {r.subject for r in records if r.name == "lower.decompose"} == {records[-2].subject}
    assert records[-1].name == "plan.arenas"


def test_has_texts_where_asked_for():
    number, *rest = weft.explain_passes(expression(), texts=True)
    assert "buffer f32" in number.before and "buffer f32" not in number.after and "param f32" in number.after
    assert all((r.before != r.after) == r.changed for r in rest if r.name.startswith("lower."))


def test_runs_nothing():
    x = expression()
    first = weft.explain_passes(x, x)
    assert [r.name for r in weft.explain_passes(x)] == [r.name for r in first]
    assert x.tolist() == [6.0, 8.0]
    assert weft.explain_passes(x.realize()) == []
    assert weft.explain_passes() == []


def test_takes_tensors_alone():
    with pytest.raises(TypeError):
        weft.explain_passes([1.0])
    with pytest.raises(AttributeError):
        weft.explain_passes(expression())[0].us = 1
