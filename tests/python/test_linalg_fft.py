"""weft.linalg and weft.fft against NumPy and PyTorch: values and gradients, one matrix and stacks of them, none at all,
float32 and float64, and the exceptions of bad calls. Where signs or an order are free, what does not depend on them."""
import inspect

import numpy as np
import pytest

import weft
from conftest import assert_close, needs_torch, torch
from weft import Tensor, dtypes

T = torch


def square(rng, batch, n):
    return rng.standard_normal((*batch, n, n)) + 3 * np.eye(n)


def positive(rng, batch, n):
    a = square(rng, batch, n)
    return a @ a.swapaxes(-1, -2)


def tall(rng, batch, n):
    return rng.standard_normal((*batch, n + 2, n))


def with_side(make):
    return lambda rng, batch, n: (make(rng, batch, n), rng.standard_normal((*batch, n, 2)))


def power_sums(re, im):
    """Of complex numbers in any order, with their conjugates."""
    return re.sum(-1), (re * re - im * im).sum(-1), (re * re + im * im).sum(-1)


def symmetric(a):
    """What reads one triangle may give all of the gradient to it; this spreads it."""
    return (a + a.transpose(-1, -2)) * 0.5


# name: (operands, ours, PyTorch's): each gives a tensor or a tuple of them
LINALG = {
    "cholesky": (positive, lambda a: weft.linalg.cholesky(symmetric(a)),
                 lambda a: T.linalg.cholesky(symmetric(a))),
    "det": (square, lambda a: weft.linalg.det(a), lambda a: T.linalg.det(a)),
    "slogdet": (square, lambda a: weft.linalg.slogdet(a), lambda a: tuple(T.linalg.slogdet(a))),
    "inv": (square, lambda a: weft.linalg.inv(a), lambda a: T.linalg.inv(a)),
    "matrix_power": (square, lambda a: (weft.linalg.matrix_power(a, 3), weft.linalg.matrix_power(a, -2),
                                        weft.linalg.matrix_power(a, 0) * a),
                     lambda a: (T.linalg.matrix_power(a, 3), T.linalg.matrix_power(a, -2),
                                T.linalg.matrix_power(a, 0) * a)),
    "solve": (with_side(square), lambda a, b: weft.linalg.solve(a, b), lambda a, b: T.linalg.solve(a, b)),
    "solve_triangular": (with_side(square), lambda a, b: (
        weft.linalg.solve_triangular(a.tril(), b, upper=False), weft.linalg.solve_triangular(a.triu(), b, upper=True),
        weft.linalg.solve_triangular(a.tril(), b, upper=False, unitriangular=True)),
        lambda a, b: (T.linalg.solve_triangular(a.tril(), b, upper=False),
                      T.linalg.solve_triangular(a.triu(), b, upper=True),
                      T.linalg.solve_triangular(a.tril(), b, upper=False, unitriangular=True))),
    "lstsq": (lambda rng, batch, n: (tall(rng, batch, n), rng.standard_normal((*batch, n + 2, 2))),
              lambda a, b: weft.linalg.lstsq(a, b),
              lambda a, b: T.linalg.pinv(a) @ b),  # whose lstsq has gradients for some drivers only
    "pinv": (tall, lambda a: weft.linalg.pinv(a), lambda a: T.linalg.pinv(a)),
    "trace": (square, lambda a: weft.linalg.trace(a), lambda a: a.diagonal(dim1=-2, dim2=-1).sum(-1)),
    "lu": (square, lambda a: (lambda packed, rows, sign: (packed, sign * 1))(*weft.linalg.lu(a)),
           lambda a: (lambda p, low, up: (low.tril(-1) + up, T.linalg.det(p)))(*T.linalg.lu(a))),
    "qr": (tall, lambda a: (lambda q, r: (q * q, r * r, q @ r))(*weft.linalg.qr(a)),
           lambda a: (lambda q, r: (q * q, r * r, q @ r))(*T.linalg.qr(a))),
    "svd": (tall, lambda a: (lambda u, s, vh: (u * u, s, vh * vh))(*weft.linalg.svd(a, full_matrices=False)),
            lambda a: (lambda u, s, vh: (u * u, s, vh * vh))(*T.linalg.svd(a, full_matrices=False))),
    "eigh": (positive, lambda a: (lambda w, v: (w, v * v))(*weft.linalg.eigh(symmetric(a))),
             lambda a: (lambda w, v: (w, v * v))(*T.linalg.eigh(symmetric(a)))),
    "eig": (square, lambda a: (lambda w: power_sums(w[..., 0], w[..., 1]))(weft.linalg.eig(a)[0]),
            lambda a: (lambda w: power_sums(w.real, w.imag))(T.linalg.eig(a)[0])),
}


def as_list(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


def drawn(name, batch, n):
    made = LINALG[name][0](np.random.default_rng(len(name) + n), batch, n)
    return made if isinstance(made, tuple) else (made,)


def compare(ours, theirs, arrays, dtype, near):
    leaves = [Tensor(a, dtype=dtype, requires_grad=True) for a in arrays]
    wanted = [T.tensor(a, dtype=getattr(T, dtype.name), requires_grad=True) for a in arrays]
    ys, zs = as_list(ours(*leaves)), as_list(theirs(*wanted))
    assert len(ys) == len(zs)
    for y, z in zip(ys, zs):
        assert y.dtype == dtype
        assert_close(y, z.detach().numpy(), near, near)
    loss, wanted_loss = 0, 0
    for y, z in zip(ys, zs):
        if not z.requires_grad:
            continue
        w = np.cos(np.arange(z.numel()) + 1.0).reshape(z.shape)
        loss = loss + (y * Tensor(w, dtype=dtype, requires_grad=False)).sum()
        wanted_loss = wanted_loss + (z * T.tensor(w, dtype=z.dtype)).sum()
    if not all(a.size for a in arrays):
        return
    wanted_loss.backward()
    for got, z in zip(loss.gradient(*leaves), wanted):
        scale = max(1.0, float(z.grad.abs().max()))
        assert_close(got / scale, z.grad.numpy() / scale, near, near)


@needs_torch
@pytest.mark.parametrize("name", LINALG)
def test_linalg_like_pytorch(name):
    _, ours, theirs = LINALG[name]
    for batch, n in (((), 4), ((), 1), ((2,), 3), ((2, 3), 2), ((0,), 3)):
        compare(ours, theirs, drawn(name, batch, n), dtypes.float64, 1e-7)
    compare(ours, theirs, drawn(name, (2,), 3), dtypes.float32, 2e-3)


@pytest.mark.parametrize("name", LINALG)
def test_linalg_of_no_matrices(name):
    for y in as_list(LINALG[name][1](*[Tensor(a) for a in drawn(name, (0,), 3)])):
        assert y.shape[0] == 0 and y.numpy().size == 0


def test_every_function_has_a_row():
    def functions(module):
        return {n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")
                and not inspect.isclass(getattr(module, n))}
    assert functions(weft.linalg) == set(LINALG)
    others = {"fftn", "ifftn", "fftshift", "ifftshift", "fftfreq", "rfftfreq", "hann_window", "hamming_window", "stft", "istft"}
    assert functions(weft.fft) == set(FFT) | others  # test_transforms_over_axes_and_frequencies


@pytest.mark.parametrize("name", [n for n in LINALG if n not in ("pinv", "lstsq", "qr", "svd", "lu", "trace")])
def test_linalg_needs_square_matrices(name):
    f, more = getattr(weft.linalg, name), {}
    others = [Tensor.ones(2, 2)] if name in ("solve", "solve_triangular") else []
    if name == "matrix_power":
        others = [2]
    if name == "solve_triangular":
        more = {"upper": True}
    with pytest.raises(ValueError):
        f(Tensor.ones(2, 3), *others, **more)
    with pytest.raises(ValueError):
        f(Tensor.ones(3), *others, **more)
    with pytest.raises(TypeError):
        f(Tensor([[1, 2], [3, 4]]), *others, **more)
    with pytest.raises(TypeError):
        f("matrix", *others, **more)


# ---- Fourier transforms

def complexes(x):
    return T.view_as_complex(x.contiguous())


def of_complex(f):
    return lambda x, *rest: f(complexes(x), *rest)


def to_complex(f):
    return lambda *given: T.view_as_real(f(*given))


def of_torch(name):
    f = getattr(T.fft, name)
    f = to_complex(f) if name != "irfft" else f
    return of_complex(f) if name != "rfft" else f


FFT = ("fft", "ifft", "rfft", "irfft")


@needs_torch
@pytest.mark.parametrize("name", FFT)
def test_fft_like_pytorch(name):
    ours, theirs = getattr(weft.fft, name), of_torch(name)
    pairs = () if name == "rfft" else (2,)
    rng = np.random.default_rng(3)
    for shape, n, axis, norm in (((8,), None, -1, "backward"), ((3, 5), None, -1, "ortho"),
                                 ((6, 2), None, 0, "forward"), ((2, 7), 12, -1, "backward"),
                                 ((2, 9), 5, -1, "ortho"), ((37,), None, 0, "backward"),
                                 ((2, 3, 4), 3, 1, "forward"), ((1,), 2, -1, "backward")):
        x = rng.standard_normal((*shape, *pairs))
        compare(lambda t: ours(t, n=n, axis=axis, norm=norm), lambda t: theirs(t, n, axis, norm), [x], dtypes.float64,
                1e-9)
        compare(lambda t: ours(t, n=n, axis=axis, norm=norm), lambda t: theirs(t, n, axis, norm), [x], dtypes.float32,
                2e-4)


@pytest.mark.parametrize("name", FFT)
def test_fft_of_bad_arguments(name):
    f = getattr(weft.fft, name)
    x = Tensor.ones(4) if name == "rfft" else Tensor.ones(4, 2)
    with pytest.raises(IndexError):
        f(x, axis=3)
    with pytest.raises(ValueError):
        f(x, n=-1)
    with pytest.raises(ValueError):
        f(x, norm="none")
    with pytest.raises(TypeError):
        f("numbers")
    if name != "rfft":
        with pytest.raises(ValueError):
            f(Tensor.ones(4, 3))


def as_complex(t):
    a = t.numpy()
    return a[..., 0] + 1j * a[..., 1]


def test_transforms_over_axes_and_frequencies():
    x = np.random.default_rng(0).standard_normal((4, 6, 2))
    z = x[..., 0] + 1j * x[..., 1]
    np.testing.assert_allclose(as_complex(weft.fft.fftn(Tensor(x))), np.fft.fftn(z), atol=1e-10)
    np.testing.assert_allclose(as_complex(weft.fft.ifftn(Tensor(x), axes=(0,), norm="ortho")), np.fft.ifftn(z, axes=(0,), norm="ortho"), atol=1e-10)
    np.testing.assert_array_equal(weft.fft.fftshift(Tensor(x), 0).numpy(), np.fft.fftshift(x, 0))
    np.testing.assert_array_equal(weft.fft.ifftshift(weft.fft.fftshift(Tensor(x), (0, 1)), (0, 1)).numpy(), x)
    for n in (5, 6):
        np.testing.assert_allclose(weft.fft.fftfreq(n, .5).numpy(), np.fft.fftfreq(n, .5), rtol=1e-6)
        np.testing.assert_allclose(weft.fft.rfftfreq(n).numpy(), np.fft.rfftfreq(n), rtol=1e-6)
        np.testing.assert_allclose(weft.fft.hann_window(n, False).numpy(), np.hanning(n), atol=1e-6)
        np.testing.assert_allclose(weft.fft.hamming_window(n, False).numpy(), np.hamming(n), atol=1e-6)
    signal = Tensor(x[:, :, 0].reshape(-1))
    window = weft.fft.hann_window(8).double()
    frames = weft.fft.stft(signal, 8, 2, window)
    assert frames.shape == (5, 13, 2)
    np.testing.assert_allclose(weft.fft.istft(frames, 8, 2, window, length=24).numpy(), signal.numpy(), atol=1e-6)
