"""scan, checkpoint, gradients of one's own, kernels of one's own."""
import numpy as np
import pytest

import weft
from weft import Tensor, dtypes


def near(a, b, tolerance=1e-5):
    np.testing.assert_allclose(a.numpy(), b.numpy() if isinstance(b, Tensor) else b, rtol=tolerance,
                               atol=tolerance)


def some(*shape):
    return (Tensor.randn(*shape) * 0.5).realize()


def layer(h, p):
    y = (h @ p["w"] + p["b"]).tanh()
    return y, {"norm": (y * y).sum()}


def unrolled(h, p):
    norms = []
    for i in range(p["w"].shape[0]):
        h, y = layer(h, {k: v[i] for k, v in p.items()})
        norms.append(y["norm"])
    return h, {"norm": Tensor.stack(*norms)}


def test_scan_is_the_loop_written_out():
    h, p = some(3, 4), {"w": some(5, 4, 4), "b": some(5, 4)}
    got, want = weft.scan(layer, h, p), unrolled(h, p)
    grads = [(r[0].sum() + r[1]["norm"].sum()).gradient(h, p["w"], p["b"]) for r in (got, want)]
    for a, b in zip(*grads):
        near(a, b)
    near(got[0], want[0])
    near(got[1]["norm"], want[1]["norm"])


def test_scan_without_slices_and_backwards():
    x, none = weft.scan(lambda c, _: (c * 2, None), Tensor([1.0, 3.0]), length=10)
    assert none is None
    near(x, [1024, 3072])
    last, sums = weft.scan(lambda c, v: (c + v, c + v), Tensor(0.0), Tensor([1.0, 2.0, 3.0]), reverse=True)
    near(last, 6)
    near(sums, [6, 5, 3])


def test_while_loop_ends_where_its_condition_says():
    x = Tensor([2.0, 9.0, 100.0])
    root = weft.while_loop(lambda r: (r * r - x).abs().max() > 1e-4, lambda r: (r + x / r) / 2, x, most=50)
    near(root, np.array([2**0.5, 3, 10]))
    state = weft.while_loop(lambda c: c["n"] < 5, lambda c: {"n": c["n"] + 1, "x": c["x"] * 2}, {"n": Tensor(0), "x": Tensor([1.0, 3.0])}, 100)
    assert state["n"].item() == 5 and state["x"].tolist() == [32, 96]
    assert weft.while_loop(lambda n: n < 5, lambda n: n + 1, Tensor(0), 3).item() == 3


def test_while_loop_says_what_is_wrong():
    with pytest.raises(ValueError, match="changes its structure"):
        weft.while_loop(lambda c: c.sum() > 0, lambda c: (c, c), some(3), 5)
    with pytest.raises(ValueError, match="one number"):
        weft.while_loop(lambda c: c > 0, lambda c: c + 1, some(3), 5)


def test_scan_says_what_is_wrong():
    with pytest.raises(ValueError, match="its shape and dtype must stay"):
        weft.scan(lambda c, v: (c.sum(), None), some(3), some(2, 3))
    with pytest.raises(ValueError, match="changes its structure"):
        weft.scan(lambda c, v: ((c, c), None), some(3), some(2, 3))
    with pytest.raises(ValueError, match="must be equal"):
        weft.scan(lambda c, v: (c, None), some(3), (some(2, 3), some(3, 3)))


def test_checkpoint_changes_nothing():
    x, w = some(3, 4), some(4, 4)
    f = lambda v: ((v @ w).tanh() @ w, v.sum())
    grads = [(g(x)[0].sum() * g(x)[1]).gradient(x, w) for g in (f, weft.checkpoint(f))]
    for a, b in zip(*grads):
        near(a, b)


def test_custom_gradient():
    @weft.custom_gradient(lambda x, y, up: up[0])
    def straight_through(x):
        return x.sign()
    x, w = some(5), some(5)
    near((straight_through(x) * w).sum().gradient(x)[0], w)
    near(straight_through(x), np.sign(x.numpy()))
    rows = some(3, 5)
    near(weft.vmap(lambda v: (straight_through(v) * w).sum().gradient(v)[0])(rows), np.tile(w.numpy(), (3, 1)))


def test_function_with_a_gradient():
    @weft.function(grad_fxn=lambda grad, call: (grad * call.src[2] * 2, None))
    def f(a, b):
        return a * b
    a, b = some(4), some(4)
    grads = f(a, b).sum().gradient(a, b)
    near(grads[0], b * 2)
    near(grads[1], np.zeros(4))
    g = weft.function(grad_fxn=lambda grad, call: (grad * 7,))(lambda v, by: v * by)
    near(g(a, 3).sum().gradient(a)[0], np.full(4, 7))


def product(a, b):
    def write(k):
        (m, n), inner = k.output_shape(0), k.input_shape(0)[1]
        i, j, l = k.range(m), k.range(n), k.range(inner)
        k.store(0, (i, j), k.sum(k.load(0, (i, l)) * k.load(1, (l, j)), [l]))
    return weft.custom_kernel("my_product", [a, b], [(a.shape[0], b.shape[1])], write,
                              gradient=lambda x, y, up: (up[0] @ x[1].T, x[0].T @ up[0]))[0]


def test_custom_kernel():
    a, b = some(7, 9), some(9, 5)
    near(product(a, b), a.numpy() @ b.numpy())
    near(product(a.relu(), b).exp().sum(), np.exp(np.maximum(a.numpy(), 0) @ b.numpy()).sum(), 1e-4)
    for got, want in zip(product(a, b).tanh().sum().gradient(a, b), (a @ b).tanh().sum().gradient(a, b)):
        near(got, want)
    batch = some(3, 7, 9)
    near(weft.vmap(product, in_axes=(0, None))(batch, b), batch.numpy() @ b.numpy())


def test_custom_kernel_folds_and_masks():
    classes = Tensor([0, 2, 2, 1, 0, 2, 7, -1])

    def write(k):
        i = k.range(8)
        c = k.load(0, i)
        k.store(0, k.position(c, 3), 1, combine="add", when=(c >= 0) & (c < 3))
        k.store(1, i, k.where(i % 2 == 0, (i * 2).cast(dtypes.float32).sqrt(), -1.5))
    counts, roots = weft.custom_kernel("histogram", [classes], [((3,), dtypes.int32), (8,)], write)
    assert counts.tolist() == [2, 1, 3]
    near(roots, [np.sqrt(2 * i) if i % 2 == 0 else -1.5 for i in range(8)])


def test_custom_kernel_says_what_is_wrong():
    x = some(4, 5)

    def with_body(write):
        weft.custom_kernel("mine", [x], [(4,)], write)
    with pytest.raises(IndexError, match="give one for each axis"):
        with_body(lambda k: k.store(0, k.range(4), k.load(0, 0)))
    with pytest.raises(TypeError, match="has no value while it is written"):
        with_body(lambda k: k.store(0, 0, 1 if k.load(0, (0, 0)) > 0 else 2))
    with pytest.raises(ValueError, match="nothing is stored"):
        with_body(lambda k: None)
    with pytest.raises(ZeroDivisionError):
        with_body(lambda k: 1 // 0)
    plain = weft.custom_kernel("mine", [x], [(4,)], lambda k: k.store(0, k.range(4), 1))[0]
    with pytest.raises(ValueError, match="has no gradient"):
        plain.sum().gradient(x)


def test_eig_against_numpy():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((3, 6, 6))
    w, v = weft.linalg.eig(Tensor(a))
    w, v = (z.numpy()[..., 0] + 1j * z.numpy()[..., 1] for z in (w, v))
    np.testing.assert_allclose(a @ v, v * w[:, None, :], atol=1e-12)
    for got, want in zip(w, np.linalg.eigvals(a)):
        order = lambda z: z[np.lexsort((z.imag.round(9), z.real.round(9)))]
        np.testing.assert_allclose(order(got), order(want), atol=1e-11)


def test_random_keys_give_jaxs_bits():
    key = weft.random.key(0)
    assert weft.random.bits(key, (5,)).tolist() == [0xf29a4fa7, 0xfa843692, 0x55110e28, 0x77faa835, 0x91e43bb7]
    assert weft.random.split(key, 3).tolist() == [[0x6b200159, 0x99ba4efe], [0x375f238f, 0xcddb151d],
                                                  [0xf71f4ea9, 0xa20e4081]]
    assert weft.random.uniform(key, (2,)).tolist() == [float.fromhex("0x1.e5349cp-1"), float.fromhex("0x1.f5086cp-1")]
    assert weft.random.bits(weft.random.fold_in(key, 1), (2, 2), dtypes.uint64).shape == (2, 2)
    with pytest.raises(TypeError):
        weft.random.bits(key, (2,), dtypes.float32)
