"""The special cases of the Python array API standard's elementwise functions, as data, in float32 and float64: called
as functions, with numbers on either side, as operators, reflected and in place.

Source: https://data-apis.org/array-api/2024.12/API_specification/elementwise_functions.html, "Special cases" of each
function. What a note there leaves open is left out."""
import operator

import numpy as np
import pytest

import weft.array_api as xp

DTYPES = ["float32", "float64"]


def numbers(kind, dtype):
    """The numbers that a word of a table stands for."""
    info = np.finfo(dtype)
    small = [float(info.tiny), 2.0 ** -20, 0.25, 0.5, 0.75]
    large = [1.5, 2.0, 3.0, 7.25, 1e6, 2.0 ** 66, float(info.max)]
    some = small + [1.0] + large
    below = [-x for x in some]
    words = {
        "nan": [np.nan], "inf": [np.inf], "-inf": [-np.inf], "+0": [0.0], "-0": [-0.0], "1": [1.0], "-1": [-1.0],
        "0": [0.0, -0.0], "infs": [np.inf, -np.inf], "units": [1.0, -1.0],
        "pos": some, "neg": below, "nonzero": some + below, "finite": some + below + [0.0, -0.0],
        "above1": large + [np.inf], "below-1": [-x for x in large] + [-np.inf], "below1": small + below + [0.0, -np.inf],
        "far": large + [-x for x in large], "near": small + [-x for x in small] + [0.0, -0.0],
        "not1": [x for x in some + below if x != 1] + [0.0, -0.0, np.inf, -np.inf],
        "odd": [1.0, 3.0, 5.0], "-odd": [-1.0, -3.0, -5.0], "even": [2.0, 4.0, 0.5, 1.5, 2.0 ** 66],
        "-even": [-2.0, -4.0, -0.5, -1.5, -2.0 ** 66], "fraction": [0.5, -0.5, 1.5, -2.25], "whole": [1.0, -2.0, 3.0, 2.0 ** 66, -2.0 ** 66],
    }
    words["any"] = words["finite"] + words["infs"] + words["nan"]
    words["number"] = words["finite"] + words["infs"]
    words["pos+"], words["neg+"] = some + [np.inf], below + [-np.inf]
    return words[kind]


PI = {"pi": np.pi, "-pi": -np.pi, "pi/2": np.pi / 2, "-pi/2": -np.pi / 2, "pi/4": np.pi / 4, "-pi/4": -np.pi / 4,
      "3pi/4": 3 * np.pi / 4, "-3pi/4": -3 * np.pi / 4}
ITSELF = "nan:nan +0:+0 -0:-0 inf:inf -inf:-inf "
LOG = "nan:nan neg+:nan 0:-inf 1:+0 inf:inf"

OF_ONE = {
    "abs": "nan:nan -0:+0 +0:+0 infs:inf",
    "acos": "nan:nan above1:nan below-1:nan 1:+0",
    "acosh": "nan:nan below1:nan 1:+0 inf:inf",
    "asin": "nan:nan above1:nan below-1:nan +0:+0 -0:-0",
    "asinh": ITSELF,
    "atan": "nan:nan +0:+0 -0:-0 inf:pi/2 -inf:-pi/2",
    "atanh": "nan:nan above1:nan below-1:nan -1:-inf 1:inf +0:+0 -0:-0",
    "ceil": ITSELF + "whole:x1",
    "cos": "nan:nan 0:1 infs:nan",
    "cosh": "nan:nan 0:1 infs:inf",
    "exp": "nan:nan 0:1 inf:inf -inf:+0",
    "expm1": "nan:nan +0:+0 -0:-0 inf:inf -inf:-1",
    "floor": ITSELF + "whole:x1",
    "isfinite": "nan:no infs:no finite:yes",
    "isinf": "nan:no infs:yes finite:no",
    "isnan": "nan:yes infs:no finite:no",
    "log": LOG, "log2": LOG, "log10": LOG,
    "log1p": "nan:nan below-1:nan -1:-inf -0:-0 +0:+0 inf:inf",
    "round": ITSELF + "whole:x1",
    "sign": "nan:nan 0:+0 pos+:1 neg+:-1",
    "signbit": "+0:no -0:yes inf:no -inf:yes pos:no neg:yes",
    "sin": "nan:nan +0:+0 -0:-0 infs:nan",
    "sinh": ITSELF,
    "sqrt": "nan:nan neg+:nan +0:+0 -0:-0 inf:inf",
    "tan": "nan:nan +0:+0 -0:-0 infs:nan",
    "tanh": "nan:nan +0:+0 -0:-0 inf:1 -inf:-1",
    "trunc": ITSELF + "whole:x1",
}
NAN = "nan any:nan, any nan:nan, "
QUOTIENT = (NAN + "infs infs:nan, 0 0:nan, +0 pos+:+0, -0 pos+:-0, +0 neg+:-0, -0 neg+:+0, pos+ +0:inf, pos+ -0:-inf, "
            "neg+ +0:-inf, neg+ -0:inf, pos inf:+0, neg -inf:+0, ")
FLOORED = QUOTIENT + "inf pos:inf, inf neg:-inf, -inf pos:-inf, -inf neg:inf, "
OF_TWO = {
    "add": NAN + "inf -inf:nan, -inf inf:nan, inf inf:inf, -inf -inf:-inf, inf finite:inf, -inf finite:-inf, finite inf:inf, "
           "finite -inf:-inf, -0 -0:-0, -0 +0:+0, +0 -0:+0, +0 +0:+0, 0 nonzero:x2, nonzero 0:x1",
    "subtract": NAN + "inf inf:nan, -inf -inf:nan, inf -inf:inf, -inf inf:-inf, inf finite:inf, -inf finite:-inf, finite inf:-inf, "
                "finite -inf:inf, -0 +0:-0, -0 -0:+0, +0 +0:+0, +0 -0:+0, nonzero 0:x1",
    "atan2": NAN + "pos 0:pi/2, +0 pos:+0, +0 +0:+0, +0 -0:pi, +0 neg:pi, -0 pos:-0, -0 +0:-0, -0 -0:-pi, -0 neg:-pi, neg 0:-pi/2, "
             "pos inf:+0, pos -inf:pi, neg inf:-0, neg -inf:-pi, inf finite:pi/2, -inf finite:-pi/2, inf inf:pi/4, inf -inf:3pi/4, "
             "-inf inf:-pi/4, -inf -inf:-3pi/4",
    "copysign": "nan any:nan, pos+ pos+:x1, pos+ neg+:-x1, neg+ pos+:-x1, neg+ neg+:x1, pos+ +0:x1, pos+ -0:-x1, neg+ -0:x1, "
                "neg+ +0:-x1, 0 pos+:+0, 0 neg+:-0",
    "divide": QUOTIENT + "inf pos:inf, inf neg:-inf, -inf pos:-inf, -inf neg:inf, pos -inf:-0, neg inf:-0",
    "floor_divide": FLOORED + "pos -inf:-0, neg inf:-0",
    "equal": "nan any:no, any nan:no, inf inf:yes, -inf -inf:yes, -0 +0:yes, +0 -0:yes, finite infs:no, infs finite:no",
    "not_equal": "nan any:yes, any nan:yes, inf inf:no, -inf -inf:no, -0 +0:no, finite infs:yes",
    "greater": "nan any:no, any nan:no, inf finite:yes, finite inf:no, 0 0:no", "less": "nan any:no, any nan:no, -inf finite:yes, 0 0:no",
    "greater_equal": "nan any:no, any nan:no, inf inf:yes, 0 0:yes", "less_equal": "nan any:no, any nan:no, inf inf:yes, 0 0:yes",
    "hypot": "infs any:inf, any infs:inf, nan finite:nan, finite nan:nan, nan nan:nan",
    "logaddexp": NAN + "inf number:inf, number inf:inf",
    "maximum": NAN + "inf number:inf, number inf:inf", "minimum": NAN + "-inf number:-inf, number -inf:-inf",
    "multiply": NAN + "infs 0:nan, 0 infs:nan, +0 pos:+0, -0 pos:-0, +0 neg:-0, -0 neg:+0, pos -0:-0, neg +0:-0, inf pos+:inf, "
                "inf neg+:-inf, -inf pos+:-inf, -inf neg+:inf, pos+ inf:inf, neg+ inf:-inf, pos+ -inf:-inf, neg+ -inf:inf",
    "nextafter": NAN + "0 +0:+0, 0 -0:-0, inf inf:inf, -inf -inf:-inf",
    "pow": "not1 nan:nan, any 0:1, nan nonzero:nan, far inf:inf, far -inf:+0, units infs:1, 1 number:1, near inf:+0, near -inf:inf, "
           "inf pos:inf, inf neg:+0, -inf odd:-inf, -inf even:inf, -inf -odd:-0, -inf -even:+0, +0 pos:+0, +0 neg:inf, -0 odd:-0, "
           "-0 even:+0, -0 -odd:-inf, -0 -even:inf, neg fraction:nan",
    "remainder": NAN + "infs any:nan, 0 0:nan, 0 pos:+0, 0 neg:-0, nonzero 0:nan, pos inf:x1, neg -inf:x1, pos -inf:x2, neg inf:x2",
}
# Where the standard says that libraries differ, and ours gives what Python does: a == a % b + b * (a // b).
OF_OPERATOR = OF_TWO | {"floor_divide": FLOORED + "pos -inf:-1, neg inf:-1"}
OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
             "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "equal": operator.eq,
             "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
             "greater_equal": operator.ge}
IN_PLACE = {"add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul, "divide": operator.itruediv,
            "floor_divide": operator.ifloordiv, "remainder": operator.imod, "pow": operator.ipow}


def cases(rows, dtype):
    """(operands, the right result) of a table."""
    for row in rows:
        words, result = row.strip().rsplit(":", 1)
        grid = [(x,) for x in numbers(words.split()[0], dtype)]
        for word in words.split()[1:]:
            grid = [(*xs, y) for xs in grid for y in numbers(word, dtype)]
        for operands in grid:
            known = {**PI, "yes": True, "no": False, "x1": operands[0], "-x1": -operands[0], "x2": operands[-1], "+0": 0.0, "-0": -0.0}
            yield operands, known[result] if result in known else float(result)


def is_right(got, wanted):
    if isinstance(wanted, bool):
        return got is wanted
    if wanted != wanted:
        return got != got
    # Angles are "an implementation-dependent approximation".
    close = abs(got - wanted) <= 1e-6 * abs(wanted) if wanted in PI.values() else got == wanted
    return close and np.signbit(got) == np.signbit(wanted)


def expect(name, dtype, known, got):
    assert str(got.dtype) in (f"dtypes.{dtype}", "dtypes.bool") and got.shape == (len(known),), got
    wrong = [(xs, g, right) for (xs, right), g in zip(known, got.tolist()) if not is_right(g, right)]
    assert not wrong, f"{name} of {dtype}: (operands, got, wanted) {wrong[:10]}, {len(wrong)} of {len(known)}"


def in_dtype(known, dtype):
    """As the dtype has them: its largest number is a float32 of its own."""
    return [xp.asarray(np.array(xs, dtype)) for xs in zip(*(xs for xs, _ in known))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_ONE)
def test_special_cases_of_one(name, dtype):
    known = list(cases(OF_ONE[name].split(), dtype))
    x, = in_dtype(known, dtype)
    expect(name, dtype, known, getattr(xp, name)(x))
    for operands, right in known:
        one = [(operands, right)]
        expect(name, dtype, one, getattr(xp, name)(xp.full((1,), operands[0], dtype=getattr(xp, dtype))))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_TWO)
def test_special_cases_of_two(name, dtype):
    known = list(cases(OF_TWO[name].split(","), dtype))
    x, y = in_dtype(known, dtype)
    expect(name, dtype, known, getattr(xp, name)(x, y))
    known = list(cases(OF_OPERATOR[name].split(","), dtype))
    if name in OPERATORS:
        expect(f"operator {name}", dtype, known, OPERATORS[name](x, y))
    if name in IN_PLACE:
        z = xp.asarray(x, copy=True)
        changed = IN_PLACE[name](z, y)
        assert changed is z
        expect(f"{name} in place", dtype, known, z)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_TWO)
def test_special_cases_of_an_array_and_a_number(name, dtype):
    """Numbers are constants, which are folded: the same results."""
    functions = [(name, getattr(xp, name), OF_TWO)]
    if name in OPERATORS:
        functions.append((f"operator {name}", OPERATORS[name], OF_OPERATOR))
    for said, function, table in functions:
        known = list(cases(table[name].split(","), dtype))
        for side in (0, 1):
            for number in {repr(xs[side]): xs[side] for xs, _ in known}.values():
                some = [(xs, right) for xs, right in known if repr(xs[side]) == repr(number)]
                x = in_dtype(some, dtype)[1 - side]
                got = function(number, x) if side == 0 else function(x, number)
                expect(f"{said} with a number as x{side + 1}", dtype, some, got)
