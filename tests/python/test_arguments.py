"""Arguments in the forms that programs of tinygrad, PyTorch and NumPy give them, and the exceptions for bad ones."""
import numpy as np
import pytest

import weft
from conftest import needs_torch
from weft import Tensor, Variable, dtypes

NUMBERS = Tensor([1.0, 2.0, 3.0])
NUMBER = Tensor(3.0)


@pytest.mark.parametrize("axis", (0, -1))
@pytest.mark.parametrize("name, wanted", (
    ("sum", 3), ("prod", 3), ("max", 3), ("min", 3), ("mean", 3), ("any", True), ("all", True), ("logsumexp", 3),
    ("softmax", 1), ("log_softmax", 0), ("softmin", 1), ("cumsum", 3), ("cumprod", 3), ("logcumsumexp", 3),
    ("argmax", 0), ("argmin", 0), ("squeeze", 3), ("argsort", 0)))
def test_a_number_has_an_axis_where_one_is_asked_for(name, wanted, axis):
    result = getattr(NUMBER, name)(axis)
    assert result.shape == () and result.item() == wanted


def test_a_number_has_an_axis_in_pairs():
    for pair in (NUMBER.cummax(0), NUMBER.cummin(-1), NUMBER.sort(0), NUMBER.std_mean(0, correction=0)[::-1]):
        assert [t.shape for t in pair] == [(), ()] and pair[0].item() == 3
    assert NUMBER.var(0, correction=0).item() == 0
    for bad in (1, -2):
        with pytest.raises(IndexError):
            NUMBER.sum(bad)


def test_forms_of_an_index():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    t = Tensor(x)
    for key in (None, (None, 1), (..., None), (slice(None), None, 0), Ellipsis):
        np.testing.assert_array_equal(t[key].numpy(), x[key])
    t[None] = 7.0
    assert t.tolist() == [[7.0] * 3] * 2


def test_flip_of_no_axes():
    assert NUMBERS.flip(()).tolist() == [1, 2, 3]
    assert NUMBERS.flip(0).tolist() == NUMBERS.flip((0,)).tolist() == [3, 2, 1]


def test_source_of_scatter_may_be_longer():
    src = Tensor([[1.0, 2, 3], [4, 5, 6]])
    index = Tensor([[0, 2]])
    assert Tensor.zeros(2, 3).scatter(1, index, src).tolist() == [[1, 0, 2], [0, 0, 0]]
    got = Tensor.ones(2, 3).scatter_reduce(1, index, src, reduce="sum")
    assert got.tolist() == [[2, 1, 3], [1, 1, 1]]


# ---- exceptions

FITS_NOT = (
    lambda: NUMBERS @ Tensor([1.0, 2.0]), lambda: NUMBERS + Tensor([1.0, 2.0]), lambda: NUMBERS.reshape(-1, -1),
    lambda: NUMBERS.reshape(2, 2), lambda: NUMBERS.permute(0, 0), lambda: NUMBERS.roll((1, 2)),
    lambda: NUMBERS.expand(4), lambda: NUMBERS.cat(Tensor.ones(2, 2)), lambda: NUMBERS.div(2, rounding_mode="typo"),
    lambda: Tensor.meshgrid(NUMBERS, indexing="typo"), lambda: NUMBERS.clamp(), lambda: Tensor.zeros(-2),
    lambda: Tensor.rand(-1), lambda: Tensor.eye(-3), lambda: Tensor.linspace(0, 1, -2),
    lambda: Tensor.randint(3, low=5, high=2), lambda: Tensor.linspace(0, 1, 3, dtype=dtypes.bool),
    lambda: Tensor([1, 2]) ** -1, lambda: Tensor.einsum("ij,jk", Tensor.ones(2, 3), Tensor.ones(2, 3)),
    lambda: Tensor.ones(1, 1, 4, 4).conv2d(Tensor.ones(1, 2, 3, 3)), lambda: NUMBERS.topk(4),
    lambda: Tensor([[1], [2, 3]]), lambda: NUMBERS.item(), lambda: NUMBERS.backward())
WRONG_DTYPE = (
    lambda: NUMBERS & NUMBERS, lambda: NUMBERS | 1, lambda: ~NUMBERS, lambda: NUMBERS << 1, lambda: NUMBERS.one_hot(3),
    lambda: Tensor("abc"), lambda: Tensor({}), lambda: NUMBERS.bitcast(dtypes.bool), lambda: NUMBERS.bitcast("double"))
OUTSIDE = (
    lambda: NUMBERS[4], lambda: NUMBERS[-4], lambda: NUMBERS[1, 2], lambda: NUMBERS[1.5], lambda: NUMBERS[Tensor(1.0)],
    lambda: NUMBERS.sum(1), lambda: NUMBERS.unsqueeze(4), lambda: NUMBERS.squeeze(3), lambda: NUMBERS.softmax(2),
    lambda: NUMBERS[..., ...], lambda: NUMBERS.gather(1, Tensor([0])), lambda: NUMBERS.split(2, 5), lambda: Tensor(3.0)[0])


@pytest.mark.parametrize("kind, also, calls", (
    (ValueError, RuntimeError, FITS_NOT), (TypeError, RuntimeError, WRONG_DTYPE), (IndexError, LookupError, OUTSIDE)))
def test_exceptions(kind, also, calls):
    for call in calls:
        for caught in (kind, also):
            with pytest.raises(caught, match=r"^\["):
                call()
    assert issubclass(weft.ArgumentError, ValueError) and issubclass(weft.DTypeError, TypeError)


@pytest.mark.parametrize("name", ("requires_grad_", "is_param_", "realize", "backward", "assign", "to", "replace",
                                  "data", "__getitem__", "__format__"))
def test_methods_of_what_is_no_tensor(name):
    assert Tensor.__imul__(1.5, 1) is NotImplemented
    for other in (1.5, "a", None, [NUMBERS]):
        with pytest.raises(TypeError):
            getattr(Tensor, name)(other, 1)


def test_sizes_in_two_forms_at_once():
    with pytest.raises(ValueError, match="one list"):
        Tensor.zeros((2, 2), 2)
    with pytest.raises(ValueError, match="one list"):
        Tensor.stack((NUMBERS, NUMBERS), NUMBERS)


# ---- powers, bounds, padding: derivatives and values at the edges

@needs_torch
@pytest.mark.parametrize("base, exponent", [(b, e) for b in (-2.0, 0.0, 0.5, 2.0)
                                            for e in (-1.5, -1.0, 0.0, 0.3, 1.0, 1.5, 2.0)])
def test_slopes_of_powers_are_torchs(base, exponent):
    import torch
    x, e = Tensor([base], requires_grad=True), Tensor([exponent], requires_grad=True)
    tx, te = torch.tensor([base], requires_grad=True), torch.tensor([exponent], requires_grad=True)
    ours = (x ** e).sum().gradient(x, e)
    theirs = torch.autograd.grad((tx ** te).sum(), (tx, te))
    np.testing.assert_allclose((x ** e).numpy(), (tx ** te).detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(np.abs(ours[0].numpy()), np.abs(theirs[0].numpy()), rtol=1e-5)
    if base >= 0:  # PyTorch has NaN below 0, also where the power is a number
        np.testing.assert_allclose(ours[1].numpy(), theirs[1].numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("x, power, slope", (
    (0.0, -2, -np.inf), (-0.0, -2, np.inf), (0.0, -3, -np.inf), (np.inf, -2, 0), (np.inf, -4, 0), (-2.0, -2, 0.25)))
def test_slopes_of_negative_powers(x, power, slope):
    t = Tensor(x, dtype="float64")
    assert (t ** power).gradient(t)[0].item() == slope


def test_slopes_at_the_ends_of_arcs():
    t = Tensor([-1.0, 0.0, 1.0])
    assert t.asin().sum().gradient(t)[0].tolist() == [np.inf, 1, np.inf]
    assert t.acos().sum().gradient(t)[0].tolist() == [-np.inf, -1, -np.inf]


def test_slopes_of_roots_at_zero():
    for x in ([0.0, 0, 4, 0], [0.0] * 4):
        t = Tensor(x).reshape(1, 1, 1, 4)
        pooled = t.lp_pool2d(2, (1, 2)).sum().gradient(t)[0].flatten().tolist()
        halves = t.norm(0.5).gradient(t)[0].flatten().tolist()
        assert pooled == halves == [float(v > 0) for v in x]


@pytest.mark.parametrize("x, y", ((3.0, 4.0), (2.0, -2.0), (-1e-9, 1e-9), (0.0, 2.0), (5.0, 0.0)))
def test_second_derivatives_of_hypot(x, y):
    a, b = Tensor(x, dtype="float64"), Tensor(y, dtype="float64")
    da, db = a.hypot(b).gradient(a, b)
    found = [g.item() for d in (da, db) for g in d.gradient(a, b)]
    r = np.hypot(x, y)
    np.testing.assert_allclose(found, np.array([y * y, -x * y, -x * y, x * x]) / r**3, rtol=1e-12)


def test_short_vectors_have_a_direction():
    x, y = Tensor([[1e-5, 0.0]]), Tensor([[1e-6, 1e-6]])
    assert abs(x.cosine_similarity(y).item() - 0.5 ** 0.5) < 1e-6
    assert x.cosine_similarity(x * 0).item() == 0


def test_divergence_of_what_is_no_number():
    assert np.isnan(Tensor([0.0]).kl_div(Tensor([np.nan])).item())
    assert Tensor([-np.inf]).kl_div(Tensor([0.0])).item() == 0


@pytest.mark.parametrize("q", (0.1, 0.3, 0.7, 0.9))
def test_quantiles_beside_infinities(q):
    for x in ([-np.inf, 1.0, 2.0], [1.0, 2.0, np.inf], [-np.inf, np.inf, 0.0]):
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(Tensor(x).quantile(q).item(), np.quantile(x, q))
    assert Tensor([np.inf, np.inf]).quantile(q).item() == np.inf


def test_slope_of_a_constant_power():
    x = Tensor([1.0, 2.0])
    assert (x ** 0).sum().gradient(x)[0].tolist() == [0, 0]


def test_slopes_at_the_bounds_of_clamp():
    x = Tensor([-3.0, -2.5, 0.0, 1.5, 2.0, float("nan")])
    assert x.clip(-2.5, 1.5).sum().gradient(x)[0].tolist() == [0, 1, 1, 1, 0, 1]
    assert np.isnan(x.clip(-2.5, 1.5).numpy()[-1])


@needs_torch
@pytest.mark.parametrize("mode", ("reflect", "replicate", "circular"))
@pytest.mark.parametrize("amounts", ((-1, 2, 2, -1), (3, -1, 1, -2), (2, 2, -1, -1)))
def test_padding_that_cuts_is_torchs(mode, amounts):
    import torch
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    wanted = torch.nn.functional.pad(torch.tensor(x), amounts, mode=mode).numpy()
    np.testing.assert_array_equal(Tensor(x).pad(amounts, mode=mode).numpy(), wanted)


def test_a_circle_is_closed_by_what_is_left():
    x = Tensor.arange(5).reshape(1, 1, 5)
    assert x.pad((2, -2), mode="circular").tolist() == [[[1, 2, 0, 1, 2]]]
    with pytest.raises(ValueError, match="only 1 to repeat"):
        x.pad((2, -4), mode="circular")


# ---- bits

@pytest.mark.parametrize("there", ("uint8", "int16", "uint32", "float64", "int64"))
@pytest.mark.parametrize("here", ("uint8", "int16", "float32", "float64"))
def test_bits_in_another_width_are_numpys(here, there):
    x = np.random.default_rng(0).integers(0, 256, (3, 64), dtype=np.uint8).view(here)
    ours = Tensor(x.view(np.uint8)).bitcast(here).bitcast(there).bitcast(dtypes.uint8)
    np.testing.assert_array_equal(ours.numpy(), x.view(there).view(np.uint8))


# ---- sizes that are chosen per run

def test_sizes_as_numbers():
    n = Variable("n", 1, 10).bind(4)
    assert (Tensor(3) * n).item() == 12 and (n * 4 + Tensor(1)).item() == 17
    assert Tensor(n).item() == 4 and Tensor.full((2,), n).tolist() == [4, 4]
    assert Tensor.arange(0, n).tolist() == [0, 1, 2, 3] and Tensor.arange(n, 7).tolist() == [4, 5, 6]
    assert Tensor.arange(1, 10, n).tolist() == [1, 5, 9]
    assert n > 0 and n >= 4 and not n < 4 and n <= 4 and int(n) == n.val == 4
    variable, value = n.unbind()
    assert value == 4 and variable.bind(5).val == 5


def test_values_of_sizes_that_are_chosen_per_run():
    x = Tensor(np.arange(20.0, dtype=np.float32).reshape(10, 2)).realize()
    for length in (2, 5):
        n = Variable("n", 1, 10).bind(length)
        part = x[:n] + 1
        np.testing.assert_array_equal(part.numpy(), x.numpy()[:length] + 1)
        assert part.tolist() == part.numpy().tolist()
        assert part[:length].shape == (length, 2) and part[:1].shape == (1, 2)


# ---- lists by name, bits of randomness, several devices

def test_lists_by_name():
    x = Tensor([[1.0, 2.0, 3.0]])
    assert x.reshape(shape=(3, 1)).shape == x.view(shape=(3, 1)).shape == x.permute(order=(1, 0)).shape == (3, 1)
    assert x.expand(shape=(2, 3)).shape == x.repeat(repeats=(2, 1)).shape == x.pad_to(shape=(2, 3)).shape == (2, 3)
    assert x.flip(axis=1).tolist() == [[3, 2, 1]] and x.shrink_to(shape=(1, 2)).tolist() == [[1, 2]]
    with pytest.raises(TypeError, match="twice"):
        x.reshape(3, 1, shape=(3, 1))


def test_batchnorm_over_several_axes():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    numbers = np.random.default_rng(1).normal(size=(4, 2, 4)).astype(np.float32)
    weight, bias, mean, invstd = (n.reshape(2, 1, 4) for n in numbers)
    got = Tensor(x).batchnorm(*(Tensor(n) for n in numbers), axis=(0, 2))
    np.testing.assert_allclose(got.numpy(), (x - mean) * invstd * weight + bias, rtol=1e-5, atol=1e-6)


def test_low_level_forms():
    x = Tensor([1.0, 2.0])
    assert Tensor.const(3).item() == 3 and Tensor.const(3, dtypes.half).dtype == dtypes.half
    assert x.const_like(2).tolist() == [2, 2] and Tensor.invalids(2, 3).shape == (2, 3)
    assert x.ufix(3).dtype == dtypes.float32 and Tensor([1]).ufix(1.5).dtype == dtypes.float32 and x.ufix(x) is x
    assert x.image_dot(x).item() == 5
    image = Tensor.ones(1, 1, 3, 3)
    assert image.image_conv2d(Tensor.ones(1, 1, 3, 3)).item() == 9


def test_threefry_is_the_papers():
    # Random123's known answers for threefry2x32 of 20 rounds (its kat_vectors).
    for counter, key, wanted in (((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
                                 ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
                                 ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0))):
        def packed(words):
            return Tensor([words[0] | words[1] << 32], dtype=dtypes.uint64)
        assert packed(counter).threefry(packed(key)).tolist() == packed(wanted).tolist()


def test_several_devices_that_share_memory():
    devices = ("CPU:1", "CPU:2")
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    a, b = Tensor(x).shard(devices, 0), Tensor(x).shard(devices)
    np.testing.assert_array_equal(((a + b).sum(1) @ Tensor.ones(4, device=devices)).numpy(), 2 * x.sum())
    assert Tensor(x).shard_like(a).device == a.device == Tensor.ones(2, device=devices).device
    assert a.rand_like().device == a.zeros_like().device == a.device
    with Tensor.train():
        assert a.dropout(0.5).numpy().shape == (4, 2)
    for bad in (lambda: Tensor(x).shard(("CPU:1", "CPU:2", "CPU:3"), 0), lambda: Tensor(x).shard(devices, 2),
                lambda: Tensor(x).shard(("NULL", "CPU"))):
        with pytest.raises((ValueError, IndexError)):
            bad()


def test_training_on_another_device():
    x, w = Tensor([[1.0, 2.0]]), Tensor([[1.0], [1.0]])
    x.to_("CPU:1"), w.shard_(("CPU:1", "CPU:2"))
    with Tensor.train():
        optimizer = weft.nn.optim.Adam([w], lr=0.1)
        (x @ w).sum().backward()
        optimizer.step()
    assert w.device == "CPU:1" and w.grad.tolist() == [[1], [2]]
    np.testing.assert_allclose(w.numpy(), [[0.9], [0.9]], rtol=1e-5)
    with pytest.raises(ValueError, match="same"):
        weft.nn.Conv2d(1, 1, 2, padding="not_same")


@needs_torch
def test_classes_are_the_last_axis():
    import torch
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 5, 7)).astype(np.float32), rng.integers(0, 7, (3, 5))
    for reduction in ("mean", "sum", "none"):
        wanted = torch.nn.functional.cross_entropy(torch.tensor(x).permute(0, 2, 1), torch.tensor(y), reduction=reduction,
                                                   label_smoothing=0.1, ignore_index=2)
        got = Tensor(x).sparse_categorical_crossentropy(Tensor(y), ignore_index=2, label_smoothing=0.1, reduction=reduction)
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="classes"):
        Tensor(x).sparse_categorical_crossentropy(Tensor(y[:2]))


@needs_torch
@pytest.mark.parametrize("mode, most", (("bilinear", 0), ("bicubic", 1)))  # whose weights PyTorch has in f32
@pytest.mark.parametrize("sizes", (((64, 64), (10, 10)), ((12, 20), (9, 31)), ((5, 7), (5, 3)), ((5, 7), (12, 9))))
def test_bytes_are_resized_as_torch_does(mode, most, sizes):
    import torch
    x = np.random.default_rng(0).integers(0, 256, (2, 3, *sizes[0])).astype(np.uint8)
    for corners in (False, True):
        wanted = torch.nn.functional.interpolate(torch.tensor(x), size=sizes[1], mode=mode, align_corners=corners)
        got = Tensor(x).interpolate(sizes[1], mode=mode, align_corners=corners)
        assert got.dtype == dtypes.uint8
        np.testing.assert_allclose(got.int().numpy(), wanted.int().numpy(), rtol=0, atol=most)


def test_repeats_of_each_element():
    x = np.arange(6).reshape(2, 3)
    for counts, dim in (([2, 0, 1], 1), ([3, 1], 0), ([3, 1], -2), ([1, 0, 2, 1, 0, 3], None)):
        assert Tensor(x).repeat_interleave(Tensor(counts), dim).tolist() == x.repeat(counts, dim).tolist()
    for wrong in (Tensor([1, 2]), Tensor([1.0, 2.0, 3.0]), Tensor([1, -1, 1])):
        with pytest.raises(ValueError, match="count"):
            Tensor(x).repeat_interleave(wrong, 1)


def test_integers_where_floats_are_usual():
    Tensor.manual_seed(0)
    drawn = Tensor.uniform(1000, low=-5, high=5, dtype=dtypes.int32)
    assert drawn.dtype == dtypes.int32 and drawn.min().item() >= -5 and drawn.max().item() <= 4
    assert Tensor([0, 9, 0]).multinomial(5, replacement=True).tolist() == [1] * 5
    image = Tensor([[[[0, 100], [200, 255]]]], dtype=dtypes.uint8)
    assert image.interpolate((4, 4), mode="nearest").tolist()[0][0][0] == [0, 0, 100, 100]
    assert image.interpolate((1, 1)).dtype == dtypes.uint8 and image.interpolate((1, 1)).item() == 139
