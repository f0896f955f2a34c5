"""TinyJit looks into objects: what they hold is what a captured function depends on."""
import dataclasses
import enum
import pickle
import sys
import threading
import time
from collections import OrderedDict, deque, namedtuple
from types import SimpleNamespace

import numpy as np

import pytest

from weft import JitError, Tensor, TinyJit, dtypes, nn


class Box:
    def __init__(self, t, **more):
        self.t = t
        self.__dict__.update(more)


class Slots:
    __slots__ = ("t", "k", "unset")

    def __init__(self, t, k=1):
        self.t, self.k = t, k


class Derived(Slots):
    __slots__ = ("more",)


@dataclasses.dataclass(frozen=True)
class Frozen:
    t: Tensor
    k: int = 1


@dataclasses.dataclass
class Output:
    t: Tensor
    parts: list
    loss: None | Tensor = None
    kind: str = "plain"


class Items(OrderedDict):
    pass


Pair = namedtuple("Pair", "t k")
Mode = enum.Enum("Mode", "ADD MUL")


def t(i):
    return Tensor([float(i), 1.0])


HOLDERS = [
    ("object", lambda x: Box(x), lambda b: b.t), ("slots", lambda x: Slots(x), lambda b: b.t),
    ("derived slots", lambda x: Derived(x), lambda b: b.t), ("frozen", lambda x: Frozen(x), lambda b: b.t),
    ("namespace", lambda x: SimpleNamespace(t=x), lambda b: b.t), ("named tuple", lambda x: Pair(x, 1), lambda b: b.t),
    ("deque", lambda x: deque([x]), lambda b: b[0]), ("dict of a class", lambda x: Items(t=x), lambda b: b["t"]),
    ("nested", lambda x: Box([{"a": Slots(x)}]), lambda b: b.t[0]["a"].t), ("function", lambda x: lambda: x, lambda f: f()),
    ("method", lambda x: Box(x).__init__.__self__, lambda b: b.t), ("list", lambda x: [x], lambda b: b[0]),
]


@pytest.mark.parametrize("name, hold, tensor_of", HOLDERS, ids=[row[0] for row in HOLDERS])
def test_new_holders_every_call(name, hold, tensor_of):
    f = TinyJit(lambda holder: tensor_of(holder) + 1)
    alive = []
    for i in range(6):
        holder = hold(t(i))
        if i % 2:
            alive.append(holder)  # an address that is not used again
        assert f(holder).tolist() == [i + 1, 2], i
    assert f.captured


CHANGES = [
    (lambda x, v: Box(x, k=v), 1, 2), (lambda x, v: Slots(x, v), 1, 2), (lambda x, v: Frozen(x, v), 1, 2.0),
    (lambda x, v: Box(x, k=v), "a", "b"), (lambda x, v: Box(x, k=v), Mode.ADD, Mode.MUL), (lambda x, v: Box(x, k=v), None, 3),
    (lambda x, v: Box(x, k=v), dtypes.float32, dtypes.int32), (lambda x, v: Box(x, k=v), {1, 2}, {1, 3}),
    (lambda x, v: Box(x, k=v), np.arange(3), np.arange(1, 4)), (lambda x, v: Box(x, k=v), np.float32(1), np.float32(2)),
    (lambda x, v: Box(x, k=v), int, float), (lambda x, v: Box(x, k=v), slice(0, 1), slice(0, 2)),
    (lambda x, v: Box(x, k=v), lambda y: y, lambda y: y + 1), (lambda x, v: [x, v], True, False),
    (lambda x, v: Box(x, k=v), [1, [2]], [1, [3]]), (lambda x, v: Box(x, **{v: 1}), "a", "b"),
    (lambda x, v: v(x), Slots, Frozen),
]


@pytest.mark.parametrize("make, captured, other", CHANGES)
def test_other_values_are_errors(make, captured, other):
    f = TinyJit(lambda b: (b[0] if isinstance(b, list) else b.t) * 2)
    for i in range(3):
        assert f(make(t(i), captured)).tolist() == [2 * i, 2]
    with pytest.raises(JitError, match="was|structure"):
        f(make(t(0), other))
    assert f(make(t(7), captured)).tolist() == [14, 2]


def expect_refused(thing):
    for argument in (thing, [thing], Box(t(0), thing=thing)):
        f = TinyJit(lambda x, a: x + 1)
        with pytest.raises(JitError, match="argument 1"):
            f(t(0), argument)


def test_what_cannot_be_looked_into_is_an_error_at_once():
    for thing in (threading.Lock(), iter([1]), (i for i in range(3)), object(), memoryview(b"x")):
        expect_refused(thing)


def test_tensors_of_others_are_an_error_at_once():
    expect_refused(pytest.importorskip("torch", reason="PyTorch is not installed (WEFT_TEST_TORCH=1)").ones(2))


def test_shared_and_cyclic_ones_are_looked_into_once():
    def ring(x):
        a, b = Box(x), Box(None)
        a.other, b.other = b, a
        a.all = [a, b]
        a.all.append(a.all)
        return a

    f = TinyJit(lambda a: a.other.other.t + 1)
    for i in range(5):
        assert f(ring(t(i))).tolist() == [i + 1, 2]
    tied = TinyJit(lambda a: a.t + a.same)
    for i in range(5):
        x = t(i)
        assert tied(Box(x, same=x)).tolist() == [2 * i, 2]
    with pytest.raises(JitError, match="structure"):
        tied(Box(t(1), same=t(2)))


def test_deep_structures():
    deep = t(3)
    for _ in range(20000):
        deep = [deep]

    def innermost(x):
        while isinstance(x, list):
            x = x[0]
        return x

    f = TinyJit(lambda a: innermost(a) + 1)
    for _ in range(3):
        assert f(deep).tolist() == [4, 2]
    returned = TinyJit(lambda x: deep)
    with pytest.raises(RecursionError):
        returned(t(0))
    with pytest.raises(RecursionError):
        pickle.loads(pickle.dumps(f))._skeleton if False else _load_deep(f)


def _load_deep(f):
    from weft._core import unpickled_jit
    skeleton = None
    for _ in range(100000):
        skeleton = [skeleton]
    build, (data, _) = f.__reduce__()
    return unpickled_jit(data, skeleton)


def test_models_as_arguments():
    class Layer:
        def __init__(self, n):
            self.w = Tensor.ones(n, n) * n

        @TinyJit
        def half(self, x):
            return (x @ self.w) * 0.5

    f = TinyJit(lambda m, x: x @ m.w)
    layers = [Layer(2), Layer(2)]
    layers[1].w = Tensor.ones(2, 2) * 5
    for i in range(6):
        m = layers[i % 2]
        assert f(m, Tensor.ones(1, 2) * i).tolist() == [[2 * i * (2, 5)[i % 2]] * 2]
        m.half(Tensor.ones(1, 2))  # keeps a TinyJit in the object


def test_order_of_a_dict_counts():
    f = TinyJit(lambda d: d["a"] - d["b"])
    for i in range(3):
        assert f({"a": t(i), "b": t(1)}).tolist() == [i - 1, 0]
    with pytest.raises(JitError, match="order"):
        f({"b": t(1), "a": t(5)})


def test_results_are_objects():
    def body(x):
        y = x * 2
        return Output(y, [y + 1, (y - 1,)], kind="double")

    f = TinyJit(body)
    kept = []
    for i in range(5):
        out = f(t(i))
        kept.append(out)
        assert type(out) is Output and out.kind == "double" and out.loss is None
    for i, out in enumerate(kept):
        assert out.t.tolist() == [2 * i, 2] and out.parts[0].tolist() == [2 * i + 1, 3] and out.parts[1][0].tolist() == [2 * i - 1, 1]
    g = pickle.loads(pickle.dumps(f))
    assert g(t(4)).parts[0].tolist() == [9, 3] and g(t(4)).kind == "double"
    for make in (Frozen, lambda y: Pair(y, None), Slots, lambda y: Items(t=y)):
        h = TinyJit(lambda x: make(x + 1))
        for i in range(4):
            out = h(t(i))
            assert type(out) is type(make(t(0)))
            assert (out["t"] if isinstance(out, dict) else out.t).tolist() == [i + 1, 2]


def test_results_that_are_shared_or_a_circle():
    def body(x):
        part = Box(x + 1)
        whole = Box(None, first=part, second=part)
        part.whole = whole
        return whole

    f = TinyJit(body)
    for i in range(4):
        out = f(t(i))
        assert out.first is out.second and out.first.whole is out and out.first.t.tolist() == [i + 1, 2]


def test_a_second_thread_waits_for_its_turn():
    f, wrong = TinyJit(lambda x: (x * 3).sum()), []

    def work(k):
        for i in range(60):
            if f(Tensor([float(k), float(i)])).item() != 3 * (k + i):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and f.captured


def test_functions_of_several_threads_are_captured_one_after_the_other():
    """Each with constants of its own, and switched between as often as can be."""
    errors = []

    def work(k):
        try:
            for _ in range(40):
                f = TinyJit(lambda x: ((x + Tensor([float(k)] * 3)) * 2).realize().sum())
                for i in range(4):
                    assert f(Tensor([float(i)] * 3)).item() == 6 * (i + k)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert not errors


def test_inside_of_itself_is_an_error():
    f = TinyJit(lambda x: f(x))
    with pytest.raises(JitError, match="inside of itself"):
        f(t(0))


def _assigned(x, new):
    return x.assign(new)


def _assigned_and_read(x, new):
    y = (x * 2).realize()
    x.assign(new)
    return y + x


def _assigned_a_view(x, new):
    x.assign(new * 1)
    return x * 2


@pytest.mark.parametrize("body, wanted", [(_assigned, lambda x, n: n), (_assigned_and_read, lambda x, n: 2 * x + n),
                                          (_assigned_a_view, lambda x, n: 2 * n)])
def test_assigning_to_an_argument(body, wanted):
    f = TinyJit(body)
    for i in range(6):
        x, new = Tensor([float(i), 2.0]).realize(), Tensor([10.0 + i, 20.0]).realize()
        got = f(x, new).tolist()
        assert got == [wanted(i, 10 + i), wanted(2, 20)] and x.tolist() == [10 + i, 20] and new.tolist() == [10 + i, 20]
        x.assign(x + 1).realize()  # they are apart
        assert new.tolist() == [10 + i, 20]


def test_assigning_an_argument_to_the_state():
    state = Tensor([1.0, 1.0]).realize()

    def body(x):
        y = (state * 10).realize()
        state.assign(x)
        return y

    f = TinyJit(body)
    before = [1.0, 1.0]
    for i in range(6):
        assert f(t(i)).tolist() == [10 * b for b in before]
        before = [float(i), 1.0]
        assert state.tolist() == before


@pytest.mark.parametrize("drawn_before", [0, 1, 3])
def test_arguments_drawn_and_not_computed_before_a_call(drawn_before):
    for _ in range(drawn_before):
        Tensor.randn(10, 10).realize()
    f = TinyJit(lambda a, b: (a + b).realize())
    for _ in range(5):
        a, b = Tensor.randn(10, 10), Tensor.randn(10, 10)
        c = f(a, b)
        np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy(), rtol=1e-6)
    assert f.captured and f.kernels == 1


def test_a_function_that_only_gives_its_argument_to_another():
    @TinyJit
    def f(x, a):
        x.assign(a)
        x.realize()

    x = Tensor([0])
    for i in range(1, 7):
        f(x, x.full_like(i).contiguous())
        assert x.item() == i


def test_a_seed_that_is_set_between_replays():
    def draws(x):
        return x.dropout(0.5), Tensor.rand(2), Tensor.randn(3)

    def run(f):
        Tensor.manual_seed(3)
        with Tensor.train():
            return [[t.tolist() for t in f(Tensor.ones(12))] for _ in range(4)]

    f = TinyJit(draws)
    assert run(f) == run(draws)  # captured on the way
    assert run(f) == run(draws)  # replays alone
    # What is drawn after a replay goes on where that ended.
    seen = []
    with Tensor.train():
        for g in (f, draws):
            Tensor.manual_seed(4)
            seen.append((g(Tensor.ones(12))[1].tolist(), Tensor.rand(2).tolist()))
    assert seen[0] == seen[1]


def test_equals_of_what_a_function_reads_may_change():
    a = Tensor([0.0, 0.0]).realize()
    b = Tensor([1.0, 1.0]).realize()
    a.assign(b).realize()  # one memory
    f = TinyJit(lambda x: a + x)
    for _ in range(2):
        f(Tensor([1.0, 1.0]))
    b.assign(b * 5).realize()
    assert f(Tensor([1.0, 1.0])).tolist() == [2.0, 2.0] and b.tolist() == [5.0, 5.0]

    sums, total = [], Tensor([0.0]).realize()

    @TinyJit
    def add(x):
        y = total + x
        total.assign(y)
        return y

    for _ in range(4):
        sums.append(add(Tensor([1.0])))
    assert [s.item() for s in sums] == [1, 2, 3, 4] and total.item() == 4


def test_reset_and_pickles_while_another_thread_calls():
    weight = Tensor(np.eye(64, dtype=np.float32)).realize()
    f = TinyJit(lambda x: (x @ weight).relu().sum(1))
    wrong, ends = [], time.monotonic() + 1

    def call(k):
        while time.monotonic() < ends:
            if f(Tensor.full((64, 64), k)).tolist() != [64.0 * k] * 64:
                wrong.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in (1.0, 2.0, 3.0)]
    for t in threads:
        t.start()
    while time.monotonic() < ends:
        f.reset()
        time.sleep(0.002)
        assert f.kernels >= 0 and f.kept_bytes >= 0 and f.planned_bytes >= 0
        if f.captured:
            try:
                pickle.dumps(f)
            except (AttributeError, pickle.PicklingError):
                pass  # it was no longer captured: a lambda
    for t in threads:
        t.join()
    assert not wrong


def test_another_thread_leaves_a_capture_in_progress_alone():
    started, ended, capturing = threading.Event(), threading.Event(), [False]

    def net():
        weight = Tensor([1.0, 2.0], requires_grad=True).realize()
        count, opt = Tensor([0.0]).realize(), nn.optim.SGD([weight], lr=0.1)

        def step(x, wait=False):
            opt.zero_grad()
            loss = (weight * x).square().sum()
            loss.backward()
            count.assign(count + loss.detach())
            if wait:  # the other one steps meanwhile, and begins a call of a captured function
                started.set()
                ended.wait(20)
            opt.step()
            return loss.detach()
        return step, count, weight

    def others():
        started.wait(20)
        step, _, _ = net()
        with Tensor.train():
            TinyJit(step)(Tensor([1.0, 1.0]))  # a second call would be a capture, which waits for that one
        ended.set()

    step, count, weight = net()
    f = TinyJit(lambda x: step(x, wait=capturing[0]))
    thread = threading.Thread(target=others)
    thread.start()
    losses = []
    with Tensor.train():
        for i in range(4):
            capturing[0] = i == 1
            losses.append(f(Tensor([1.0, 1.0])).item())
        thread.join()
        expected, expected_count, expected_weight = net()
        assert [expected(Tensor([1.0, 1.0])).item() for _ in range(4)] == pytest.approx(losses, rel=1e-5)
    assert count.item() == pytest.approx(expected_count.item(), rel=1e-5)
    np.testing.assert_allclose(weight.numpy(), expected_weight.numpy(), rtol=1e-5)
