"""Matrix products, convolutions, pools, resizing, losses, linear algebra, transforms, hashes."""
import hashlib

import numpy as np
import pytest

import weft.fft
import weft.linalg
from weft import Tensor, dtypes

from conftest import assert_close, assert_equal, check_gradient, needs_torch, torch

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.normal(size=shape)


@pytest.mark.parametrize("a, b", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
                                  ((5, 1, 2, 3), (6, 3, 2)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((64, 65), (65, 33))])
def test_matmul(a, b):
    x, y = normal(*a), normal(*b)
    for got in (Tensor(x) @ Tensor(y), Tensor(x).dot(Tensor(y)), Tensor(y).matmul(Tensor(x), reverse=True)):
        assert_close(got, x @ y, 1e-9, 1e-9)


@pytest.mark.parametrize("a, b", [((3,), (3,)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2))])
def test_gradient_of_matmul(a, b):
    check_gradient(lambda x, y: x @ y, normal(*a), normal(*b))


def test_matmul_dtypes_and_errors():
    assert (Tensor.ones(2, 2, dtype="half") @ Tensor.ones(2, 2, dtype="half")).dtype == dtypes.half
    assert Tensor.ones(2, 2, dtype="half").matmul(Tensor.ones(2, 2, dtype="half"), dtype=dtypes.float32).dtype == dtypes.float32
    assert_equal(Tensor([[1, 2]]) @ Tensor([[3], [4]]), np.array([[11]], "int32"))
    with pytest.raises(ValueError, match="inner"):
        Tensor.ones(2, 3) @ Tensor.ones(2, 3)


def test_linear():
    x, w, b = normal(4, 3), normal(3, 2), normal(2)
    assert_close(Tensor(x).linear(Tensor(w), Tensor(b)), x @ w + b)
    assert_close(Tensor(x).linear(Tensor(normal(3) * 0 + 2)), x * 2)


# name: (ours, torch's), shapes
TORCH = {
    "conv": (lambda x, w: x.conv2d(w, stride=2, padding=1), lambda f, x, w: f.conv2d(x, w, stride=2, padding=1), [(2, 3, 7, 6), (4, 3, 3, 3)]),
    "conv groups": (lambda x, w: x.conv2d(w, groups=2, dilation=(1, 2)), lambda f, x, w: f.conv2d(x, w, groups=2, dilation=(1, 2)), [(1, 4, 6, 7), (4, 2, 2, 2)]),
    "conv asymmetric": (lambda x, w: x.conv2d(w, padding=(1, 0, 2, 1)), lambda f, x, w: f.conv2d(f.pad(x, (1, 0, 2, 1)), w), [(1, 2, 4, 5), (3, 2, 3, 2)]),
    "conv 1d": (lambda x, w: x.conv2d(w, padding=2), lambda f, x, w: f.conv1d(x, w, padding=2), [(2, 3, 9), (4, 3, 3)]),
    "conv 3d": (lambda x, w: x.conv2d(w), lambda f, x, w: f.conv3d(x, w), [(1, 2, 4, 4, 4), (2, 2, 2, 3, 2)]),
    "transposed": (lambda x, w: x.conv_transpose2d(w, stride=2, padding=1, output_padding=1),
                   lambda f, x, w: f.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), [(1, 3, 4, 4), (3, 2, 3, 3)]),
    "max pool": (lambda x: x.max_pool2d(3, stride=2, padding=1), lambda f, x: f.max_pool2d(x, 3, 2, 1), [(1, 2, 7, 8)]),
    "max pool ceil": (lambda x: x.max_pool2d((2, 3), ceil_mode=True), lambda f, x: f.max_pool2d(x, (2, 3), ceil_mode=True), [(1, 2, 7, 8)]),
    "avg pool": (lambda x: x.avg_pool2d(2, padding=1, count_include_pad=False), lambda f, x: f.avg_pool2d(x, 2, padding=1, count_include_pad=False), [(1, 2, 6, 6)]),
    "interpolate": (lambda x: x.interpolate((7, 5)), lambda f, x: f.interpolate(x, (7, 5), mode="bilinear"), [(1, 2, 4, 4)]),
    "interpolate corners": (lambda x: x.interpolate((7, 5), align_corners=True), lambda f, x: f.interpolate(x, (7, 5), mode="bilinear", align_corners=True), [(1, 2, 4, 4)]),
    "interpolate nearest": (lambda x: x.interpolate((7, 5), mode="nearest"), lambda f, x: f.interpolate(x, (7, 5), mode="nearest"), [(1, 2, 4, 4)]),
    "interpolate exact": (lambda x: x.interpolate((3, 9), mode="nearest-exact"), lambda f, x: f.interpolate(x, (3, 9), mode="nearest-exact"), [(1, 2, 4, 4)]),
    "interpolate cubic": (lambda x: x.interpolate((7, 5), mode="cubic"), lambda f, x: f.interpolate(x, (7, 5), mode="bicubic"), [(1, 2, 4, 4)]),
    "attention": (lambda q, k, v: q.scaled_dot_product_attention(k, v), lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v), [(2, 4, 8)] * 3),
    "attention causal": (lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 4, 8)] * 3),
    "attention grouped": (lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True),
                          lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, enable_gqa=True), [(1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8)]),
    "mse": (lambda x, y: x.mse_loss(y), lambda f, x, y: f.mse_loss(x, y), [(3, 4)] * 2),
    "l1": (lambda x, y: x.l1_loss(y, reduction="sum"), lambda f, x, y: f.l1_loss(x, y, reduction="sum"), [(3, 4)] * 2),
    "huber": (lambda x, y: x.huber_loss(y, delta=.5), lambda f, x, y: f.huber_loss(x, y, delta=.5), [(3, 4)] * 2),
    "logits": (lambda x, y: x.binary_crossentropy_logits(y.sigmoid(), pos_weight=Tensor([2.0])),
               lambda f, x, y: f.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=torch.tensor([2.0])), [(3, 4)] * 2),
    "cross entropy": (lambda x: x.cross_entropy(Tensor([1, 0, 3])), lambda f, x: f.cross_entropy(x, torch.tensor([1, 0, 3])), [(3, 4)]),
    "cross entropy of probabilities": (lambda x, y: x.cross_entropy(y.softmax(), label_smoothing=.2),
                                       lambda f, x, y: f.cross_entropy(x, y.softmax(-1), label_smoothing=.2), [(3, 4)] * 2),
    "sparse": (lambda x: x.sparse_categorical_crossentropy(Tensor([1, -1, 3])), lambda f, x: f.cross_entropy(x, torch.tensor([1, -1, 3]), ignore_index=-1), [(3, 4)]),
    "nll": (lambda x: x.log_softmax().nll_loss(Tensor([1, 0, 3]), weight=Tensor([1.0, 2, 3, 4])),
            lambda f, x: f.nll_loss(x.log_softmax(-1), torch.tensor([1, 0, 3]), weight=torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)), [(3, 4)]),
}


@needs_torch
@pytest.mark.parametrize("name", TORCH)
def test_values_and_gradients_are_torchs(name):
    ours, theirs, shapes = TORCH[name]
    arrays = [normal(*s) for s in shapes]
    leaves = [Tensor(a, requires_grad=True) for a in arrays]
    marks = [torch.tensor(a, requires_grad=True) for a in arrays]
    y, wanted = ours(*leaves), theirs(torch.nn.functional, *marks)
    (y * y).sum().backward()
    (wanted * wanted).sum().backward()
    assert_close(y, wanted.detach().numpy(), 1e-6, 1e-7)
    for leaf, mark in zip(leaves, marks):
        assert_close(leaf.grad, mark.grad.numpy(), 1e-5, 1e-6)


def test_pools_with_positions():
    x = normal(1, 1, 4, 4)
    values, where = Tensor(x).max_pool2d(return_indices=True)
    assert_equal(values, x.reshape(2, 2, 2, 2).max((1, 3)).reshape(1, 1, 2, 2))
    assert_equal(x.reshape(-1)[where.numpy()], values.numpy())
    back = values.max_unpool2d(where)
    assert back.shape == (1, 1, 4, 4) and back.sum().item() == pytest.approx(values.sum().item())


def test_errors_of_names():
    with pytest.raises(ValueError, match="reduction"):
        Tensor.ones(2).mse_loss(Tensor.ones(2), reduction="max")
    with pytest.raises(ValueError, match="mode"):
        Tensor.ones(1, 1, 2, 2).interpolate((3, 3), mode="magic")


# ---- linear algebra

def test_solving():
    a, b = normal(2, 4, 4), normal(2, 4, 3)
    assert_close(weft.linalg.solve(Tensor(a), Tensor(b)), np.linalg.solve(a, b), 1e-6, 1e-8)
    assert_close(weft.linalg.inv(Tensor(a)), np.linalg.inv(a), 1e-6, 1e-8)
    assert_close(weft.linalg.det(Tensor(a)), np.linalg.det(a), 1e-8)
    assert_close(weft.linalg.cholesky(Tensor(a @ a.swapaxes(1, 2))), np.linalg.cholesky(a @ a.swapaxes(1, 2)), 1e-6, 1e-8)
    assert_close(weft.linalg.matrix_power(Tensor(a), 3), np.linalg.matrix_power(a, 3), 1e-8, 1e-8)
    tall = normal(6, 3)
    assert_close(weft.linalg.lstsq(Tensor(tall), Tensor(normal(6) * 0 + 1)), np.linalg.lstsq(tall, np.ones(6))[0], 1e-6, 1e-8)
    sign, log = weft.linalg.slogdet(Tensor(a))
    assert_close(sign * log.exp(), np.linalg.det(a), 1e-8)


def test_decompositions():
    a = normal(4, 3)
    q, r = Tensor(a).qr()
    assert_close(q @ r, a, 1e-8, 1e-9)
    u, s, vt = Tensor(a).svd(full_matrices=False)
    assert_close((u * s) @ vt, a, 1e-6, 1e-8)
    assert_close(s, np.linalg.svd(a)[1], 1e-6)
    w, v = weft.linalg.eigh(Tensor(a.T @ a))
    assert_close(w, np.linalg.eigvalsh(a.T @ a), 1e-6)
    assert_close(a.T @ a @ v, (v * w).numpy(), 1e-6, 1e-8)
    assert_close(weft.linalg.pinv(Tensor(a)), np.linalg.pinv(a), 1e-5, 1e-7)
    assert Tensor(a).newton_schulz().shape == (4, 3)


def test_fourier():
    x = normal(3, 12)
    wanted = np.fft.rfft(x)
    got = weft.fft.rfft(Tensor(x)).numpy()
    assert_close(got[..., 0] + 1j * got[..., 1], wanted, 1e-8, 1e-9)
    assert_close(weft.fft.irfft(weft.fft.rfft(Tensor(x))), x, 1e-8, 1e-9)
    assert_close(weft.fft.ifft(weft.fft.fft(Tensor(normal(2, 7, 2)), norm="ortho"), norm="ortho").shape, (2, 7, 2))


@pytest.mark.parametrize("name", ["sha3_224", "sha3_256"])
def test_keccak(name):
    data = bytes(range(200)) * 2
    assert bytes(Tensor(data).keccak(name).data()) == hashlib.new(name, data).digest()
    assert bytes(Tensor(data).keccak((136, 6)).data()) == hashlib.sha3_256(data).digest()
    assert bytes(Tensor(b"abc").keccak("shake_128").data()) == hashlib.shake_128(b"abc").digest(16)
    assert Tensor(b"abc").hash().shape == (16,)


def test_drawing():
    Tensor.manual_seed(5)
    drawn = Tensor([0.0, 1.0, 3.0]).multinomial(2000, replacement=True).numpy()
    assert set(drawn) == {1, 2} and 2.5 < (drawn == 2).sum() / (drawn == 1).sum() < 3.6
    assert sorted(Tensor([1.0, 1, 1]).multinomial(3).tolist()) == [0, 1, 2]
