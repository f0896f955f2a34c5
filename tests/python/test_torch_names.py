"""What PyTorch's users reach for: each method by PyTorch's name and arguments, compared with PyTorch's values and
gradients over dtypes, views, and calls that must fail."""
import dataclasses
import math
import warnings

import numpy as np
import pytest

from conftest import needs_torch, torch
from weft import Tensor, dtypes, torch_names

F = torch.nn.functional if torch else None
# No row: what is tested elsewhere, or has no counterpart of the same meaning.
ELSEWHERE = {"uniform_": "test_random_in_place", "normal_": "test_random_in_place", "detach_": "test_detach_in_place",
             "concat": "cat", "concatenate": "cat", "is_contiguous": "always true", "cpu": "a device's",
             "expit": "sigmoid", "type": "cast", "new_empty": "new_zeros"}


def draw(*shape, seed=0):
    """No two of one size, none near a kink, exact in float16."""
    rng = np.random.default_rng(seed)
    n = math.prod(shape)
    return ((rng.permutation(n) - n // 2) / 8 + 1 / 32).reshape(shape)


A, B, C = draw(2, 3), draw(2, 3, seed=1), draw(3, 4, seed=2)
V, W = draw(3, seed=3), draw(3, seed=4)
CUBE, SQUARE = draw(2, 3, 4, seed=5), draw(3, 3, seed=6) + 3 * np.eye(3)
POSITIVE, UNIT = np.abs(A) + .25, np.abs(A) / 4 + .25
MANY = draw(3, 5, 2, seed=7)
HOLED = np.where(draw(3, 5, seed=8) > .3, np.nan, draw(3, 5, seed=9))
AT = np.array([1, 0, 1])


@dataclasses.dataclass
class Case:
    """x.name(*args) of both libraries."""
    name: str
    x: object
    args: tuple
    options: dict
    function: object = None  # PyTorch's, where it is no method of its Tensor
    grad: bool = True
    whole: bool = True       # of integers and bools, too
    first: bool = False      # of several results the first alone is compared

    def __repr__(self):
        return f"{self.name}{len(CASES)}"


CASES: list[Case] = []
BAD: list[tuple] = []


def case(names, x, *args, function=None, grad=True, whole=True, first=False, **options):
    for name in names.split():
        CASES.append(Case(name, x, args, options, function, grad, whole, first))


def bad(name, x, *args, **options):
    """Must fail here and there."""
    BAD.append((name, x, args, options))


def torchs(name):
    return getattr(F, name, None) or getattr(torch, name, None) if torch else None


# ---- elementwise
case("abs absolute neg negative positive square sin sinc tanh exp erf erfc frac trunc fix sign sgn round floor ceil deg2rad "
     "rad2deg isposinf isneginf", A, whole=False)
for _name, _args in {"tanhshrink": (), "hardshrink": (.3,), "softshrink": (.3,), "threshold": (.1, 2.0), "glu": (0,)}.items():
    case(_name, A, *_args, function=torchs(_name), whole=False)
case("prelu", CUBE, np.array([.1, .2, .3]), whole=False)
case("prelu", A, np.array([.25]), whole=False)
case("erfinv", np.clip(A, -.9, .9), whole=False)
case("lgamma digamma", POSITIVE * 3, whole=False)
case("logit", UNIT * .7, whole=False)
case("logit", A, .1, whole=False)
case("acos arccos asin arcsin atanh arctanh", np.clip(A, -.9, .9), whole=False)
case("acosh arccosh", POSITIVE + 1, whole=False)
case("asinh arcsinh atan arctan", A, whole=False)
case("add sub subtract mul multiply maximum minimum fmax fmin lt less le less_equal gt greater ge greater_equal eq ne "
     "not_equal", A, B)
case("div divide true_divide hypot atan2 arctan2 copysign logaddexp logaddexp2 remainder fmod", A, B, whole=False)
case("floor_divide", A, B, whole=False, grad=False)
case("xlogy float_power", POSITIVE, POSITIVE[::-1].copy(), whole=False)
case("ldexp", A, np.array([[1, 2, 0]]), whole=False)
case("heaviside", np.array([-1.0, 0, 2]), V, grad=False, whole=False)
case("nextafter", A, B, grad=False, whole=False)
case("logical_and logical_or logical_xor", np.array([[0.0, 1, 2]]), np.array([[0.0], [3.0]]), grad=False)
case("bitwise_left_shift bitwise_right_shift", np.array([5, 6]), np.array([1, 2]), grad=False)
case("addcmul addcdiv", A, B, POSITIVE, value=.5, whole=False)
case("clamp_min clamp_max", A, .25, whole=False)
case("nan_to_num", np.array([np.nan, np.inf, -np.inf, 1.5]), whole=False, grad=False)
case("nan_to_num", np.array([np.nan, np.inf, -np.inf, 1.5]), 2.0, 7.0, -8.0, whole=False, grad=False)
case("isin", A, np.array([[.03125, .15625], [9.0, -.09375]]), function=torchs("isin"), grad=False)

# ---- reductions and statistics
for _args in ((), (0,), (1,), (1, True), (-1,)):
    case("median nanmedian", MANY, *_args, whole=False)
    case("nanmedian", HOLED, *_args[:2], whole=False) if _args != (1, True) else None
    case("nansum nanmean", HOLED, *_args, whole=False)
    case("amax amin", MANY, *_args, whole=False) if _args else None
    case("count_nonzero", np.round(A), *_args[:1], grad=False)
case("median", HOLED, 1, first=True, grad=False, whole=False)
case("kthvalue", MANY, 2, 1, first=True)
case("kthvalue", MANY, 1, 0, True, first=True)
case("mode", np.array([[1.0, 2, 2, 1, 3], [4, 4, 5, 5, 5]]), 1, first=True, grad=False)
for _how in ("linear", "lower", "higher", "nearest", "midpoint"):
    case("quantile", MANY, .3, 1, interpolation=_how, whole=False)
    case("nanquantile", HOLED, .7, 1, True, interpolation=_how, whole=False)
case("quantile", MANY, np.array([0.0, .25, 1]), 0, whole=False, grad=False)
case("quantile nanquantile", MANY, np.array([.5, .9]), whole=False, grad=False)
case("quantile", HOLED, .5, 1, whole=False, grad=False)
case("bincount", np.array([1, 3, 1, 0]), grad=False)
case("bincount", np.array([1, 3, 1, 0]), np.array([.5, 1, 2, .25]), minlength=6, grad=False, whole=False)
case("histc", MANY, 4, grad=False, whole=False)
case("histc", MANY, 5, -1.0, 1.0, grad=False, whole=False)
case("cov corrcoef", C, whole=False)
case("cov", V, whole=False)
case("diff", C)
case("diff", C, 2, 0)
case("diff", C, 1, 0, prepend=C[:1], append=C[1:2])
case("trapezoid", C, function=torchs("trapezoid") and (lambda x: torch.trapezoid(x)), whole=False)
case("trapezoid", C, .5, 0, function=lambda x, dx, dim: torch.trapezoid(x, dx=dx, dim=dim), whole=False)
case("broadcast_tensors", A, V, np.array([[1.0], [2.0]]), function=torchs("broadcast_tensors"))
case("aminmax", C, dim=1, whole=False)
case("msort", C, grad=False)
for _p in (2.0, 1.0, 3.0, math.inf, -math.inf, -1.5, 0.0):
    case("norm", CUBE, _p, 1, whole=False, grad=_p != 0)
case("norm", C, whole=False)
case("norm", C, "nuc", whole=False)
case("norm", C, 2, (0, 1), True, whole=False)
case("dist", A, B, whole=False)

# ---- shapes
case("dim ndimension nelement numel", CUBE, grad=False)
case("ravel", CUBE)
case("t", A)
case("t", V)
case("narrow", CUBE, 1, 1, 2)
case("narrow", CUBE, -1, -3, 2)
case("select", CUBE, 1, -2)
case("expand_as", V, A)
case("view_as reshape_as", CUBE, draw(4, 6))
case("broadcast_to", V, (4, 3))
case("fliplr flipud", CUBE)
case("hsplit", CUBE, 3)
case("vsplit", CUBE, [1])
case("dsplit", CUBE, [1, 3])
case("tensor_split", MANY, 3, 1)
case("tensor_split", MANY, [1, -1, 4, 9], 1)
case("unbind", CUBE, 1)
case("swapaxes swapdims", CUBE, 0, 2)
case("movedim moveaxis", CUBE, 0, -1)
case("movedim", CUBE, (0, 2), (1, 0))
for _k in (-1, 0, 1, 2, 3, 6):
    case("rot90", CUBE, _k, (0, 2))
case("diag_embed", CUBE)
case("diag_embed", CUBE, 1, 0, 2)
case("diag_embed", CUBE, -2, 3, 1)
case("diagflat", A, 1)
case("tile", A, (2, 1, 2))
case("split_with_sizes", MANY, [1, 4], 1)
case("unfold", MANY, 1, 3, 2)
case("argwhere", np.round(A), grad=False)

# ---- products
case("outer ger", V, W)
case("inner vdot", V, W)
case("inner", A, draw(4, 3, seed=11))
case("mm", A, C, whole=False)
case("bmm", CUBE, draw(2, 4, 5, seed=12), whole=False)
case("mv", A, V, whole=False)
case("addmm", draw(2, 4), A, C, beta=.5, alpha=2, whole=False)
case("addmm", np.full((2, 4), np.nan), A, C, beta=0, whole=False, grad=False)
case("addmv", draw(2), A, V, beta=.5, alpha=2, whole=False)
case("addr", SQUARE, V, W, alpha=3, whole=False)
case("baddbmm", draw(2, 3, 5), CUBE, draw(2, 4, 5, seed=12), beta=2, whole=False)
case("addbmm", draw(3, 5), CUBE, draw(2, 4, 5, seed=12), alpha=.5, whole=False)
case("cross", A, B, 1)
case("kron", A, C)
case("kron", V, CUBE)
case("tensordot", CUBE, draw(4, 3, 5, seed=13), ([2, 1], [0, 1]), function=lambda *a: torch.tensordot(*a), whole=False)
case("tensordot", CUBE, draw(3, 4, 5, seed=13), 2, function=lambda *a: torch.tensordot(*a), whole=False)
case("tensordot", V, W, 0, function=lambda *a: torch.tensordot(*a), whole=False)
for _p in (2.0, 1.0, 3.5, math.inf):
    case("cdist", CUBE, draw(2, 5, 4, seed=14), _p, function=lambda *a: torch.cdist(*a), whole=False, grad=_p != math.inf)
case("vander", V, 4, function=lambda x, n: torch.vander(x, n), grad=False)
case("vander", V, 3, True, function=lambda x, n, up: torch.vander(x, n, up), grad=False)
case("trace", SQUARE)
case("det logdet slogdet inverse pinverse", SQUARE @ SQUARE.T, whole=False)
case("matrix_power", SQUARE, 3, whole=False)
case("cholesky", SQUARE @ SQUARE.T + np.eye(3), whole=False, grad=False)

# ---- positions and masks
case("scatter_add", CUBE, 1, np.array([[[0, 1, 2, 2], [1, 1, 0, 0]]]), draw(1, 2, 4, seed=15))
case("index_add", CUBE, 1, AT, draw(2, 3, 4, seed=16))
case("index_add", CUBE, 0, np.array([0]), draw(1, 3, 4, seed=16), alpha=.5, whole=False)
case("index_copy", CUBE, 1, np.array([2, 0]), draw(2, 2, 4, seed=17))
case("index_fill", CUBE, 2, np.array([3, 1]), 2)
case("masked_scatter", A, A > 0, B)
case("take", CUBE, np.array([[0, 23], [-1, 5]]))
case("put", CUBE, np.array([[0, 5], [7, 3]]), draw(2, 2, seed=18))
case("put", CUBE, np.array([[0, 5], [0, 3]]), draw(2, 2, seed=18), True)
case("take_along_dim", A, np.array([[2, 0], [1, 1]]), 1)
case("take_along_dim", A, np.array([5, 0]))
SORTED = np.sort(draw(7, seed=19))
case("searchsorted", SORTED, A, function=torchs("searchsorted"), grad=False)
case("searchsorted", SORTED, SORTED, right=True, function=torchs("searchsorted"), grad=False)
case("bucketize", A, SORTED, function=torchs("bucketize"), grad=False)

case("put_along_axis", A, np.array([[2], [0]]), 5.0, 1, function=lambda x, i, v, a: x.scatter(a, i, v))
case("put_along_axis", A, np.array([[0, 1]]), draw(2, 2, seed=30), 1, function=lambda x, i, v, a: x.scatter(a, i.expand(2, 2), v))

# ---- images
PIXELS = draw(2, 8, 3, 4, seed=20)
case("pixel_shuffle", PIXELS, 2, function=torchs("pixel_shuffle"))
case("pixel_unshuffle", draw(1, 2, 4, 6), 2, function=torchs("pixel_unshuffle"))
case("channel_shuffle", PIXELS, 4, function=torchs("channel_shuffle"), grad=False)
GRID = draw(2, 3, 5, 2, seed=21) / 4
for _mode in ("bilinear", "nearest"):
    for _outside in ("zeros", "border", "reflection"):
        case("grid_sample", PIXELS, GRID, mode=_mode, padding_mode=_outside, align_corners=False, whole=False,
             function=torchs("grid_sample"))
THETA = draw(2, 2, 3, seed=22)
for _corners in (False, True):
    case("affine_grid", THETA, (2, 1, 3, 4), align_corners=_corners, function=torchs("affine_grid"), whole=False)

case("unfold2d", draw(2, 3, 5, 4, seed=23), (3, 2), 1, 1, 2, function=lambda *a: F.unfold(*a))
case("fold2d", draw(2, 12, 12, seed=24), (5, 4), (2, 2), function=lambda *a: F.fold(*a), whole=False)
case("lp_pool2d", np.abs(draw(1, 2, 5, 4, seed=25)), 3.0, 2, function=torchs("lp_pool2d"), whole=False)
case("adaptive_avg_pool", draw(2, 3, 5, 4), (3, 2), function=torchs("adaptive_avg_pool2d"), whole=False)
case("adaptive_max_pool", draw(2, 3, 5, 4), (3, 2), function=torchs("adaptive_max_pool2d"), whole=False)
case("center_crop", draw(1, 2, 6, 5), 2, 3, function=lambda x, h, w: x[..., 2:4, 1:4])
case("window", MANY, 1, 2, 2, 2, function=lambda x, *a: torch.stack([x[:, 0:3:2], x[:, 2:5:2]], -1))
case("block_diag", A, C, V, function=torchs("block_diag"))
case("_pool", draw(1, 2, 6, 5), (2, 3), (2, 1), function=lambda x, k, s: x.unfold(2, 2, 2).unfold(3, 3, 1))

# ---- losses
case("hinge_loss", A, np.sign(B), function=lambda x, y: (1 - x * y).clamp(min=0).mean(), whole=False)
LOGS, LABELS = np.log(np.array([[.2, .3, .5], [.1, .6, .3]])), np.array([[.3, .3, .4], [.2, .5, .3]])
case("kl_div", LOGS, LABELS, function=torchs("kl_div"), reduction="batchmean", whole=False)
case("smooth_l1_loss", A, B, function=torchs("smooth_l1_loss"), beta=.5, whole=False)
case("gaussian_nll_loss", A, B, POSITIVE, function=torchs("gaussian_nll_loss"), whole=False)
case("poisson_nll_loss", A, POSITIVE, function=torchs("poisson_nll_loss"), whole=False)
case("cosine_similarity", A, B, function=torchs("cosine_similarity"), whole=False)
case("cosine_embedding_loss", A, B, np.array([1.0, -1.0]), function=torchs("cosine_embedding_loss"), whole=False)
case("triplet_margin_loss", A, B, POSITIVE, function=torchs("triplet_margin_loss"), whole=False)

# ---- dtypes, new tensors
case("type_as", A, np.array([1, 2]), grad=False)
case("byte", POSITIVE, grad=False)
case("char", A, grad=False)
case("equal", A, A, grad=False)
case("equal", A, B, grad=False)
case("new_zeros new_ones", A, 2, 3, grad=False)
case("new_full", A, (2, 2), 3, grad=False)
case("new_tensor", A, [1, 2], grad=False)

# ---- in place
for _name in torch_names.IN_PLACE:
    _of_two = {"add": .5, "sub": .5, "subtract": .5, "mul": .5, "multiply": .5, "div": .5, "pow": 2, "fmod": .3, "maximum": None,
               "minimum": None, "mod": None, "remainder": .3, "clamp": -.25, "clip": -.25, "copysign": B, "atan2": B,
               "heaviside": V, "hypot": B, "xlogy": POSITIVE}
    _special = {"addcdiv": (B, POSITIVE), "addcmul": (B, POSITIVE), "addmm": (A[:, :2], B[:2]), "bitwise_and": (6,),
                "bitwise_or": (6,), "bitwise_xor": (6,), "bitwise_not": (), "index_add": (1, AT, B), "lerp": (B, .3),
                "index_copy": (1, np.array([2]), B[:, :1]), "index_fill": (1, np.array([2]), 3.0),
                "masked_fill": (A > 0, 2.0), "masked_scatter": (A > 0, B), "put": (np.array([0, 4]), np.array([1.0, 2])),
                "scatter": (1, np.array([[0], [2]]), B), "scatter_add": (1, np.array([[0], [2]]), B), "cumsum": (1,), "cumprod": (1,),
                "scatter_reduce": (1, np.array([[0], [2]]), B, "amax")}
    _x = np.array([5, 3]) if _name.startswith("bitwise") else UNIT + 1 if _name == "acosh" else UNIT * .8
    if torch and not hasattr(torch.Tensor, _name + "_"):
        ELSEWHERE[_name + "_"] = "not PyTorch's"
        continue
    _args = _special.get(_name, () if _of_two.get(_name) is None else (_of_two[_name],))
    case(_name + "_", _x, *_args, grad=False, whole=False)
case("fill_", A, 3, grad=False)
case("zero_", A, grad=False)
case("copy_", A, V, grad=False)
case("fill_diagonal_", A, 2.0, grad=False, whole=False)


def listed(y) -> list:
    if isinstance(y, (tuple, list)):
        return [part for member in y for part in listed(member)]
    return [y]


# Bad calls: here and there the same kind of exception.
for _name in ("median", "quantile", "cumsum", "unbind", "diff", "nansum", "kthvalue", "norm", "index_fill", "index_add", "scatter_add",
              "narrow", "select", "movedim", "tensor_split", "mode", "amax", "take_along_dim", "diag_embed"):
    _given = {"quantile": (.5, 5), "kthvalue": (1, 5), "norm": (2.0, 5), "index_fill": (5, AT, 1), "index_add": (5, AT, A),
              "scatter_add": (5, AT, A), "narrow": (5, 0, 1), "select": (5, 0), "movedim": (0, 5), "tensor_split": (2, 5),
              "diff": (1, 5), "take_along_dim": (np.array([[0]]), 5), "diag_embed": (0, 5, 6)}.get(_name, (5,))
    bad(_name, A, *_given)
    bad(_name, A, "a")
bad("quantile", A, 1.5)
bad("quantile", A, .5, interpolation="typo")
bad("kthvalue", A, 4)
bad("narrow", A, 1, 2, 2)
bad("select", A, 1, 3)
bad("t", CUBE)
bad("mm", A, A)
bad("mm", V, A)
bad("bmm", A, C)
bad("mv", A, A)
bad("vdot", A, A)
bad("addmm", A, A, A)
bad("outer", A, "a")
bad("kron", A, 3)
bad("bincount", A)
bad("bincount", np.array([1, -2]))
bad("bincount", np.array([1, 2]), minlength=-1)
bad("histc", np.array([1, 2]))
bad("histc", A, 0)
bad("cross", A[:, :2].copy(), B[:, :2].copy())
bad("isin", A)
bad("masked_scatter", A, A, B)
bad("masked_scatter", A, A > -9, V)
bad("scatter_add", A, 1, np.array([[0]]), np.array([[1]]))
bad("put", A, np.array([0, 1]), V.astype(np.int64))
bad("hsplit", CUBE, 2)
bad("vsplit", CUBE, 2**40)
bad("dsplit", CUBE, 3)
bad("movedim", CUBE, (0, 0), (1, 2))
bad("rot90", CUBE, 1, (0, 0))
bad("rot90", CUBE, 1, (0, 1, 2))
bad("diag_embed", A, 0, 1, 1)
bad("trace", V)
bad("norm", A, "typo")
bad("cov", CUBE)
bad("expand_as", A, V)
bad("view_as", A, V)
bad("add_", np.array([1, 2]), .5)
bad("add_", V, A)
bad("div_", np.array([1, 2]), 2)
bad("fill_diagonal_", V, 2.0)
COVERED = {c.name for c in CASES} | ELSEWHERE.keys()


@needs_torch
@pytest.mark.parametrize("at", range(len(BAD)), ids=lambda i: f"{i}-{BAD[i][0]}")
def test_bad_arguments_fail_as_torchs(at):
    name, x, args, options = BAD[at]
    kinds = (IndexError, TypeError, ValueError, RuntimeError, NotImplementedError)
    raised = []
    for of in (torchs_of, ours_of):
        with pytest.raises(kinds) as found:
            f = getattr(of(x), name, None) or (lambda *a, **o: torchs(name)(of(x), *a, **o))
            y = f(*(of(a) for a in args), **{k: of(v) for k, v in options.items()})
            [part.tolist() for part in listed(y)]
        raised.append(found.value)
    assert not isinstance(raised[1], AttributeError) and len(str(raised[1])) > 10
    assert any(isinstance(raised[0], kind) and isinstance(raised[1], kind) for kind in kinds), raised


@pytest.mark.parametrize("call", [lambda: Tensor(A).mm([[1.0]]), lambda: Tensor.bmm(Tensor(CUBE), mat2=3), lambda: Tensor(A).view_as(5),
                                  lambda: Tensor(A).type_as("f32"), lambda: Tensor.ravel([1.0]), lambda: Tensor(A).nextafter(2.0)])
def test_what_is_no_tensor_is_a_type_error(call):
    with pytest.raises(TypeError, match=r"must be a Tensor, not \w+; make one"):
        call()


def test_every_name_has_a_case():
    assert torch_names.members().keys() - COVERED == set()
    assert {name for name in ELSEWHERE if not hasattr(Tensor, name)} == set()


def test_random_in_place():
    x = Tensor.zeros(2000).realize()
    values = x.uniform_(2, 4).numpy()
    assert values.min() >= 2 and values.max() < 4 and abs(values.mean() - 3) < .1
    values = x.normal_(1, 3).numpy()
    assert abs(values.mean() - 1) < .4 and abs(values.std() - 3) < .4


def test_draws():
    n = 4000
    for name, args, mean in (("gumbel", (), .577), ("laplace", (2.0,), 2), ("log_normal", (0.0, .5), math.exp(.125)), ("exponential", (2.0,), .5)):
        values = getattr(Tensor, name)(n, **dict(zip({"laplace": ("location",), "log_normal": ("mean", "std"), "exponential": ("rate",)}.get(name, ()), args))).numpy()
        assert values.shape == (n,) and abs(values.mean() - mean) < .15, name
    assert abs(np.median(Tensor.cauchy(n).numpy())) < .2
    alpha = Tensor.full((n,), 3.0)
    assert abs(alpha.gamma(2.0).mean().item() - 1.5) < .1 and abs(alpha.beta(Tensor.full((n,), 1.0)).mean().item() - .75) < .05
    assert abs(alpha.reshape(-1, 2).dirichlet().sum(1).numpy() - 1).max() < 1e-5 and abs(alpha.student_t().mean().item()) < .2
    soft, hard = (Tensor.zeros(n, 3).gumbel_softmax(hard=how).numpy() for how in (False, True))
    assert abs(soft.sum(1) - 1).max() < 1e-5 and set(np.unique(hard)) <= {0.0, 1.0} and abs(hard.mean(0) - 1 / 3).max() < .05
    whole = Tensor.zeros(n, dtype=dtypes.int64).randint_like(2, 5)
    assert whole.dtype == dtypes.int64 and set(whole.tolist()) == {2, 3, 4}
    images = Tensor.arange(32).reshape(2, 1, 4, 4).float()
    assert images.random_crop(2, 3).shape == (2, 1, 2, 3) and images.random_flip(1.0).tolist() == images.flip(-1).tolist()
    mixed, labels = images.cutmix(Tensor([[1.0, 0], [0, 1]]), 2)
    assert mixed.shape == images.shape and labels.sum(1).tolist() == [1, 1]


def test_detach_in_place():
    x = Tensor([1.0], requires_grad=True)
    y = x * 2
    assert y.detach_() is y
    (y * x).sum().backward()
    assert x.grad.tolist() == [2]


def ours_of(x, grad=False):
    return Tensor(x, requires_grad=grad or None) if isinstance(x, np.ndarray) else x


def torchs_of(x, grad=False):
    if not isinstance(x, np.ndarray):
        return x
    t = torch.from_numpy(np.array(x))
    return t.requires_grad_() if grad else t


def in_dtype(x, dtype):
    """Drawn operands of the case in this dtype; integers as they are."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        return x
    with np.errstate(all="ignore"):
        return np.round(x * 4).astype(dtype) if np.dtype(dtype).kind in "iub" else x.astype(dtype)


def call(c: Case, dtype, of, function):
    """(operands, results) of one library."""
    grad = has_gradient(c, dtype)
    operands = [in_dtype(a, dtype) for a in (c.x, *c.args)]
    operands = [of(a, grad and isinstance(a, np.ndarray) and a.dtype.kind == "f") for a in operands]
    found = listed(function(*operands, **{k: of(in_dtype(v, dtype)) for k, v in c.options.items()}))
    return operands, found[:1] if c.first else found


def has_gradient(c: Case, dtype) -> bool:
    return c.grad and np.dtype(dtype) == np.float64 and c.x.dtype == np.float64


def method(c: Case):
    return lambda x, *args, **options: getattr(x, c.name)(*args, **options)


def theirs_of(c: Case, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(c, dtype, torchs_of, c.function or method(c))


def numbers(y):
    return y.numpy() if isinstance(y, Tensor) else y.detach().numpy() if torch and isinstance(y, torch.Tensor) else np.asarray(y)


def compare(c: Case, dtype):
    (mine, got), (others, want) = call(c, dtype, ours_of, method(c)), theirs_of(c, dtype)
    near = {"float64": 1e-9, "float32": 3e-5, "float16": 5e-3}.get(np.dtype(dtype).name, 0)
    assert len(got) == len(want), c
    for y, z in zip(got, want):
        assert numbers(y).shape == numbers(z).shape, (c, dtype)
        np.testing.assert_allclose(numbers(y).astype(float), numbers(z).astype(float), rtol=near, atol=near, err_msg=f"{c} {dtype}")
    if not has_gradient(c, dtype):
        return
    parts = [(y, z) for y, z in zip(got, want) if isinstance(z, torch.Tensor) and z.requires_grad]
    leaves = [(a, b) for a, b in zip(mine, others) if isinstance(b, torch.Tensor) and b.requires_grad]
    if not parts:
        return
    def weights(z):
        return np.asarray((np.arange(z.numel()) % 5 + 1).reshape(tuple(z.shape)) / 4)
    sum((z * torch.from_numpy(weights(z))).sum() for _, z in parts).backward()
    loss = sum((y * Tensor(weights(z), requires_grad=False)).sum() for y, z in parts)
    slopes = loss.gradient(*[a for a, _ in leaves], materialize_grads=True)
    for slope, (_, b) in zip(slopes, leaves):
        wanted = np.zeros(b.shape) if b.grad is None else b.grad.numpy(force=True)
        np.testing.assert_allclose(slope.numpy(), wanted, rtol=1e-7, atol=1e-8, err_msg=f"gradient of {c}")


@needs_torch
@pytest.mark.parametrize("at", range(len(CASES)), ids=lambda i: f"{i}-{CASES[i].name}")
def test_values_and_gradients_are_torchs(at):
    c = CASES[at]
    compare(c, np.float64)
    for dtype in (np.float32, *((np.int64, np.int32, np.uint8, np.bool_) if c.whole else ())):
        try:
            theirs_of(c, dtype)
        except (RuntimeError, TypeError, NotImplementedError):
            continue  # PyTorch has it for other dtypes alone
        compare(c, dtype)
