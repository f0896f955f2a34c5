"""What the tests share: NumPy, PyTorch where it is installed, and how close is close."""
import numpy as np
import pytest

from weft import Tensor

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed (WEFT_TEST_TORCH=1)")


def assert_close(got, wanted, rtol=1e-5, atol=1e-6):
    got = got.numpy() if isinstance(got, Tensor) else np.asarray(got)
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape, f"shape {got.shape}, wanted {wanted.shape}"
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


def assert_equal(got, wanted):
    got = got.numpy() if isinstance(got, Tensor) else np.asarray(got)
    np.testing.assert_array_equal(got, np.asarray(wanted), strict=True)


def finite_differences(f, arrays, step=1e-6):
    """d sum(f(arrays) * w) / d arrays[i] in float64, for the fixed weights w of weights_like()."""
    def value(xs):
        y = f(*[Tensor(x) for x in xs]).numpy()
        return float((y * weights_like(y)).sum())
    gradients = []
    for i, x in enumerate(arrays):
        g = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            moved = [a.copy() for a in arrays]
            moved[i][at] += step
            up = value(moved)
            moved[i][at] -= 2 * step
            g[at] = (up - value(moved)) / (2 * step)
        gradients.append(g)
    return gradients


def weights_like(y):
    """Different for every element, so that a gradient in the wrong place shows."""
    return (np.arange(y.size, dtype=np.float64).reshape(y.shape) % 7 + 1) / 4


def check_gradient(f, *arrays, rtol=1e-4, atol=1e-5):
    arrays = [np.asarray(a, dtype=np.float64) for a in arrays]
    leaves = [Tensor(a, requires_grad=True) for a in arrays]
    y = f(*leaves)
    (y * Tensor(weights_like(np.empty(y.shape)), requires_grad=False)).sum().backward()
    for leaf, wanted in zip(leaves, finite_differences(f, arrays)):
        assert_close(leaf.grad, wanted, rtol, atol)
