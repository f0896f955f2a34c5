"""TinyJit: captured once, replayed with other arguments."""
import gc
import itertools
import pickle
import subprocess
import sys
import weakref

import numpy as np

import pytest

import weft
from weft import Context, GlobalCounters, JitError, Tensor, TinyJit, Variable, function


def test_replays():
    calls = []

    @TinyJit
    def f(x, scale):
        calls.append(1)
        return ((x * scale).sum() + x).realize()

    for i in range(5):
        assert f(Tensor([1.0, i]), Tensor(2.0)).tolist() == [2 * (1 + i) + 1, 2 * (1 + i) + i]
    assert len(calls) == 2 and f.captured and f.kernels >= 1 and f.cnt == 2 and f.__doc__


def test_keeps_what_it_computes_of_constants():
    w = Tensor([1.0, 2.0, 3.0]).realize()
    f = TinyJit(lambda x: (x + (w * 3).flip(0).contiguous()).realize())
    for i in range(4):
        assert f(Tensor([i, 0.0, 1.0])).tolist() == [9 + i, 6, 4]
    assert f.kernels == 1 and f.kept_bytes == 12 and f.planned_bytes == 48
    w.assign(Tensor([0.0, 0.0, 1.0])).realize()
    assert f(Tensor([0.0, 0.0, 0.0])).tolist() == [3, 0, 0]


def test_a_stack_of_constants_is_put_in_order_once():
    stack = Tensor(np.random.default_rng(0).standard_normal((6, 256, 256)).astype(np.float32) / 16)
    f = TinyJit(lambda x: weft.scan(lambda h, w: ((h @ w).relu(), None), x, stack)[0])
    x = np.ones((64, 256), np.float32)
    wanted = x
    for w in stack.numpy():
        wanted = np.maximum(wanted @ w, 0)
    for _ in range(4):
        np.testing.assert_allclose(f(Tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-4)
    assert f.kernels == 6 and f.kept_bytes == 6 * 256 * 256 * 4
    stack.assign(stack * 2).realize()
    np.testing.assert_allclose(f(Tensor(x)).numpy(), wanted * 64, rtol=1e-4, atol=1e-2)


def test_results_do_not_share_memory():
    f = TinyJit(lambda x: x + 1)
    results = [f(Tensor([float(i)])) for i in range(5)]
    assert [r.item() for r in results] == [1, 2, 3, 4, 5]


def test_containers_and_keywords():
    @TinyJit
    def f(pair, *, table):
        a, b = pair
        return {"sum": a + table["c"], "parts": (b * 2, [b - 1])}, None

    for i in range(4):
        out, nothing = f((Tensor([i]), Tensor([10 * i])), table={"c": Tensor([5])})
        assert out["sum"].tolist() == [i + 5] and nothing is None
        assert out["parts"][0].tolist() == [20 * i] and out["parts"][1][0].tolist() == [10 * i - 1]


def test_order_of_keywords_does_not_matter():
    f = TinyJit(lambda a, b: a - b)
    for _ in range(3):
        assert f(a=Tensor([5]), b=Tensor([3])).item() == 2
    assert f(b=Tensor([1]), a=Tensor([9])).item() == 8


def test_state_is_read_and_written():
    total = Tensor([0.0])
    f = TinyJit(lambda x: total.assign(total + x).realize())
    for i in range(5):
        f(Tensor([float(i)]))
    assert total.item() == 10
    total.assign(Tensor([100.0]))
    f(Tensor([1.0]))
    assert total.item() == 101


@pytest.mark.parametrize("view", (lambda x: x.unsqueeze(0), lambda x: x.reshape(-1), lambda x: x.detach(),
                                  lambda x: x[::-1], lambda x: x[0]))
def test_views_of_what_is_written_are_results(view):
    @TinyJit
    def f(x):
        x[1:] = 1
        return view(x)
    for i in range(4):
        x = Tensor(np.full((3, 4), i, dtype="float32")).realize()
        y = f(x)
        assert x.tolist() == [[i] * 4, [1] * 4, [1] * 4] and y.tolist() == view(x).tolist()


def test_variables():
    n, data = Variable("n", 1, 8), Tensor.arange(8).float().realize()
    f = TinyJit(lambda x, size: x.shrink(((0, size),)).sum())
    for k in (2, 5, 3, 8):
        assert f(data, n.bind(k)).item() == sum(range(k))


def test_methods():
    class Model:
        def __init__(self, w):
            self.w = Tensor([w])

        @TinyJit
        def step(self, x):
            return self.w * x

    m = Model(3.0)
    assert [m.step(Tensor([float(i)])).item() for i in range(4)] == [0, 3, 6, 9]
    other = Model(4.0)  # another object is another function
    assert [other.step(Tensor([float(i)])).item() for i in range(4)] == [0, 4, 8, 12]
    assert m.step(Tensor([1.0])).item() == 3 and m.step.captured and m.step is not other.step


def test_a_method_of_an_object_that_keeps_nothing():
    class Scale:
        __slots__ = ()

        @TinyJit
        def step(self, x):
            return x * 2

    s = Scale()
    assert [s.step(Tensor([float(i)])).item() for i in range(4)] == [0, 2, 4, 6]


def test_constants_that_the_host_fills():
    f = TinyJit(lambda x: x[[2, 0]] + Tensor([1, 2]) * Tensor(np.array([3, 4])))
    for i in range(4):
        assert f(Tensor([i, 0, 10])).tolist() == [13, i + 8]
    calls = []

    def changing(x):
        calls.append(len(calls))
        return x + Tensor(calls)[-1]

    g = TinyJit(changing)
    g(Tensor([1]))
    with pytest.raises(JitError, match="host data"):
        g(Tensor([1]))


def test_nothing_to_replay():
    f = TinyJit(lambda x: None)
    f(Tensor([1]))
    with pytest.raises(JitError, match="nothing to replay"):
        f(Tensor([1]))


@pytest.mark.parametrize("wrong, text", [
    (lambda f: f(Tensor([1.0, 2, 3]), 2), "shape"), (lambda f: f(Tensor([1, 2]), 2), "dtype|is i32"),
    (lambda f: f(Tensor([1.0, 2]), 3), "constant|numbers|was"), (lambda f: f(Tensor([1.0, 2])), "structure|argument"),
])
def test_other_arguments_are_errors(wrong, text):
    f = TinyJit(lambda x, k=2: x * k)
    for _ in range(3):
        f(Tensor([1.0, 2]), 2)
    with pytest.raises((JitError, TypeError), match=text):
        wrong(f)
    assert f(Tensor([2.0, 2]), 2).tolist() == [4, 4]


def test_what_a_capture_cannot_hold():
    for body, text in [(lambda x: (x + 1).item(), "read|item|host|number"), (lambda x: 3, "returned"), (lambda x: object(), "returned")]:
        f = TinyJit(body)
        with pytest.raises((JitError, ValueError, RuntimeError), match=text):
            for _ in range(3):
                f(Tensor([1.0]))


def test_the_same_tensor_twice_is_an_error():
    f, x = TinyJit(lambda a, b: a + b), Tensor([1.0])
    f(x, Tensor([1.0]))
    with pytest.raises(JitError):
        f(x, x)


def test_errors_leave_it_usable():
    fails = [True]

    def body(x):
        if fails[0]:
            raise KeyError("from inside")
        return x + 1
    f = TinyJit(body)
    for _ in range(3):
        with pytest.raises(KeyError, match="from inside"):
            f(Tensor([1.0]))
    fails[0] = False
    assert [f(Tensor([float(i)])).item() for i in range(4)] == [1, 2, 3, 4]


def test_reset_and_off():
    f = TinyJit(lambda x: x + 1)
    for _ in range(3):
        f(Tensor([1.0]))
    f.reset()
    assert not f.captured and f(Tensor([1.0, 2])).tolist() == [2, 3]
    with Context(JIT=0):
        calls = []
        g = TinyJit(lambda x: calls.append(1) or x + 1)
        for _ in range(4):
            g(Tensor([1.0]))
        assert len(calls) == 4


def test_random_numbers_move_on():
    f = TinyJit(lambda: Tensor.rand(4))
    seen = {tuple(f().tolist()) for _ in range(5)}
    assert len(seen) == 5


def test_cycles_are_collected():
    class Model:
        def __init__(self):
            self.w = Tensor([1.0])
            self.step = TinyJit(self.forward)

        def forward(self, x):
            return x * self.w

    m = Model()
    for _ in range(3):
        m.step(Tensor([2.0]))
    gone = weakref.ref(m)
    del m
    gc.collect()
    assert gone() is None


def test_function_is_a_call():
    @function
    def f(x):
        return x * 2

    @function(precompile=True)
    def g(x):
        return f(x) + 1
    assert g(Tensor([2])).item() == 5 and f.__name__ == "f"


def test_counters_and_context():
    GlobalCounters.reset()
    (Tensor([1.0, 2.0]) + 1).realize()
    assert GlobalCounters.kernel_count == 1 and GlobalCounters.global_ops > 0 and GlobalCounters.mem_used > 0
    with pytest.raises(AttributeError):
        GlobalCounters.nonsense
    with pytest.raises(KeyError, match="NONSENSE"):
        Context(NONSENSE=1)
    before = weft._core.option("DEBUG")
    with Context(DEBUG=0, BEAM=2):
        assert weft._core.option("BEAM") == "2"
        with pytest.raises(weft.ArgumentError, match="BEAM"):
            weft.helpers.BEAM.value = 1000
    assert weft._core.option("DEBUG") == before


def test_getenv(monkeypatch):
    monkeypatch.setenv("SOME_NUMBER_OF_TESTS", "7")
    assert weft.getenv("SOME_NUMBER_OF_TESTS") == 7 and weft.getenv("NOT_THERE_AT_ALL", 3) == 3


def test_threads():
    import threading
    failures = []

    def work(seed):
        try:
            for i in range(30):
                t = Tensor([float(seed), float(i)])
                assert ((t * 2).sum() + 1).item() == 2 * (seed + i) + 1
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_views_that_begin_at_a_variable():
    x = Tensor(np.arange(20.0, dtype=np.float32).reshape(10, 2)).realize()

    @TinyJit
    def add_one(part):
        return (part + 1).realize()
    for start in (1, 2, 3, 5):
        n = Variable("n", 1, 8).bind(start)
        np.testing.assert_array_equal(add_one(x.shrink(((n, n + 2), (0, 2)))).numpy(), x.numpy()[start:start + 2] + 1)
    assert add_one.captured


def test_weights_that_nobody_has_computed():
    class Model:
        def __init__(self):
            self.layers = [weft.nn.Linear(3, 3), weft.nn.Linear(3, 2)]

        def __call__(self, x):
            return x.sequential(self.layers)

    model, x = Model(), Tensor([[1.0, 2.0, 3.0]])
    wanted = model(x).numpy()
    for f in (model, model.__call__, lambda x: model(x)):
        step = TinyJit(lambda x, f=f: f(x).realize()) if f is model else TinyJit(f)
        for _ in range(3):
            np.testing.assert_allclose(step(x).numpy(), wanted, rtol=1e-6)
        assert step.captured


def test_overridden_methods_are_captured_beside_each_other():
    class Base:
        @TinyJit
        def step(self, x):
            return x + 1

    class More(Base):
        @TinyJit
        def step(self, x):
            return x * 2

        def both(self, x):
            return self.step(x), Base.step.__get__(self)(x)

    more = More()
    for i in range(4):
        twice, plus = more.both(Tensor([float(i)]))
        assert twice.item() == 2 * i and plus.item() == i + 1


# ---- pickles


def in_new_process(pickled, program):
    """What `program`, which has `f`, prints in a process that knows none of this file."""
    code = f"import pickle, sys\nfrom weft import Tensor\nf = pickle.loads({pickled!r})\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pickled_function_needs_no_source():
    weight = Tensor([[1.0, 2.0], [3.0, 4.0]])
    f = TinyJit(lambda x: (x @ weight).relu())
    for i in range(3):
        f(Tensor([1.0, i]))
    out = in_new_process(pickle.dumps(f), "print([f(Tensor([1.0, i])).tolist() for i in range(4)], f.captured)")
    assert out == f"{[[1.0 + 3 * i, 2.0 + 4 * i] for i in range(4)]} True\n"


def test_pickled_training_goes_on():
    Tensor.manual_seed(1)
    model = weft.nn.Linear(4, 2)
    optimizer = weft.nn.optim.Adam(weft.nn.state.get_parameters(model), lr=0.1)

    @TinyJit
    def step(x, y):
        with Tensor.train():
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
            return loss

    data = np.random.default_rng(0).standard_normal((6, 5, 4)).astype(np.float32)
    for x in data[:3]:
        step(Tensor(x), Tensor(x[:, :2]))
    again = pickle.loads(pickle.dumps(step))
    expected = [step(Tensor(x), Tensor(x[:, :2])).item() for x in data[3:]]
    assert [again(Tensor(x), Tensor(x[:, :2])).item() for x in data[3:]] == expected
    # Its parameters are its own.
    assert again(Tensor(data[0]), Tensor(data[0, :, :2])).item() == step(Tensor(data[0]), Tensor(data[0, :, :2])).item()


def test_pickled_structures_constants_and_sizes():
    @TinyJit
    def f(pair, n, *, scale):
        a, b = pair
        return {"sum": a[:n].sum() * scale, "rest": (b + 1, [b - 1, None])}

    n = Variable("n", 1, 8)
    a = Tensor.arange(8).float().contiguous().realize()
    for i in range(2, 4):
        f((a, Tensor([i])), n.bind(i), scale=2)
    g = pickle.loads(pickle.dumps(f))
    for i in range(1, 8):
        out = g((a, Tensor([i])), n.bind(i), scale=2)
        assert out["sum"].item() == i * (i - 1) and out["rest"][0].tolist() == [i + 1]
        assert out["rest"][1][0].tolist() == [i - 1] and out["rest"][1][1] is None
    with pytest.raises(JitError, match="was 2"):
        g((a, Tensor([1])), n.bind(2), scale=3)
    with pytest.raises(JitError, match="shape"):
        g((a, Tensor([1, 2])), n.bind(2), scale=2)
    with pytest.raises(JitError, match="is f32, was i32"):
        g((a, Tensor([1.0])), n.bind(2), scale=2)
    assert pickle.loads(pickle.dumps(g))((a, Tensor([1])), n.bind(5), scale=2)["sum"].item() == 20


def test_pickled_before_its_capture_is_the_function():
    f = pickle.loads(pickle.dumps(TinyJit(np.negative)))
    assert not f.captured and f.fxn is np.negative


def test_pickles_of_two_devices():
    x = Tensor([1.0, 2.0, 3.0, 4.0]).shard(("CPU:0", "CPU:1"), 0).realize()
    f = TinyJit(lambda y: (x + y.shard(("CPU:0", "CPU:1"), 0)).sum())
    for i in range(3):
        f(Tensor([i] * 4).float().realize())
    out = in_new_process(pickle.dumps(f), "print([f(Tensor([i] * 4).float().realize()).item() for i in range(4)])")
    assert out == f"{[10.0 + 4 * i for i in range(4)]}\n"


def test_damaged_pickles_are_errors():
    f = TinyJit(lambda x: x + 1)
    for _ in range(2):
        f(Tensor([1.0]))
    make, (data, skeleton) = f.__reduce__()
    for end in range(0, len(data), 7):
        with pytest.raises((ValueError, RuntimeError)):
            make(data[:end], skeleton)
    with pytest.raises(RuntimeError, match="damaged"):
        make(data, [skeleton, skeleton])(Tensor([1.0]))


# ---- one variable, several values


def sums_of(x, sizes):
    return sum(x[:n].sum() * 10 ** i for i, n in enumerate(sizes))


@pytest.mark.parametrize("first", [(1, 1, 1), (3, 2, 1), (2, 2, 1), (1, 3, 1)])
@pytest.mark.parametrize("names", ["aaa", "aab", "aba", "abc"])
def test_sizes_are_told_apart_by_their_places(names, first):
    x = Tensor.arange(1, 5).realize()
    variables = [Variable(name, 1, 3) for name in names]

    def bound(values):
        return [v.bind(k) for v, k in zip(variables, values)]

    f = TinyJit(sums_of)
    for _ in range(2):
        f(x, bound(first))
    every = list(itertools.product((1, 2, 3), repeat=3))
    for values in every:
        assert f(x, bound(values)).item() == sums_of(x, values).item(), values
    again = pickle.loads(pickle.dumps(f))
    for values in every:
        assert again(x, bound(values)).item() == sums_of(x, values).item(), values


def test_a_draft_and_a_model_at_two_positions():
    cache, draft = (Tensor.zeros(8).contiguous().realize() for _ in range(2))

    @TinyJit
    def step(token, at, at_of_draft):
        cache[at:at + 1] = token
        draft[at_of_draft:at_of_draft + 1] = token * 2
        return (cache[:at + 1].sum() + draft[:at_of_draft + 1].sum()).realize()

    position = Variable("start_pos", 0, 7)
    wanted_cache, wanted_draft = np.zeros(8), np.zeros(8)
    for i, (a, b) in enumerate([(1, 0), (2, 1), (3, 2), (3, 3), (4, 4), (5, 4), (5, 6), (7, 7)]):
        got = step(Tensor([i + 1.0]).realize(), position.bind(a), position.bind(b)).item()
        wanted_cache[a], wanted_draft[b] = i + 1, 2 * (i + 1)
        assert got == wanted_cache[:a + 1].sum() + wanted_draft[:b + 1].sum(), (a, b)
    np.testing.assert_array_equal(cache.numpy(), wanted_cache)
    np.testing.assert_array_equal(draft.numpy(), wanted_draft)
    assert step.captured


def test_shares_of_quantiles_are_looked_at_in_captured_functions():
    for q in (.3, [.1, .6], np.array([.25]), 1):
        f = TinyJit(lambda x, q=q: x.quantile(q, 1).realize())
        for k in range(4):
            x = np.arange(12.0).reshape(3, 4) * (k + 1)
            assert np.allclose(f(Tensor(x).realize()).numpy(), np.quantile(x, q, 1))
    for wrong in (1.5, [.5, -.1], float("nan")):
        with pytest.raises(ValueError, match="give shares from 0 to 1"):
            Tensor([1.0, 2.0]).quantile(wrong)
    with pytest.raises(TypeError, match="takes a number or a list"):
        Tensor([1.0, 2.0]).quantile("a")


def test_a_value_assigned_elsewhere_between_two_updates():
    state, other = Tensor([1, 2, 3, 4]).realize(), Tensor([1, 2, 0, 5]).realize()

    @TinyJit
    def step(x):
        state[2:] = 0
        x.assign(state)
        state[other % 4] = 7
        same = (state > 20).where(state, state)
        state[0] += 1
        return x + 0, same

    first = 1
    for _ in range(5):
        x, same = step(Tensor([9, 9, 9, 9]).realize())
        assert x.tolist() == [first, 2 if first == 1 else 7, 0, 0]
        assert same.tolist() == [7, 7, 7, 0]  # what it was before the last update
        first = 8
        assert state.tolist() == [8, 7, 7, 0]


def test_writing_under_a_mask_of_one_element():
    at = Tensor(0.0).realize()

    @TinyJit
    def write(limit):
        at[at < limit] = 3.0
        at[at < limit] = at + 1
        return at + 0

    assert [write(Tensor(k).realize()).item() for k in (0.0, 1.0, 2.0, 3.5, 9.0)] == [0, 3, 3, 4, 4]
    rows = Tensor([[1, 2], [3, 4]])
    for wanted in (False, True):
        rows[Tensor(wanted)] = Tensor([[5, 6]])
        assert rows.tolist() == ([[5, 6]] * 2 if wanted else [[1, 2], [3, 4]])


def test_a_choice_between_equal_values_beside_an_update():
    places, one = Tensor([0, 3]).realize(), Tensor([1]).realize()

    @TinyJit
    def step(x):
        x[places] = True
        x[:-2] = x[2:]
        before = one.cast("bool").all().where(x, one.cast("bool"))
        alias = x.detach()
        same = x.where(x, alias)
        alias[one] = alias[one] ^ True
        return before, same

    for _ in range(3):
        before, same = step(Tensor([[True, False]] * 4).realize())
        assert before.tolist() == same.tolist() == [[True, False], [True, True]] * 2
