"""Functions that look for elements: indexing, searching, sorting, sets."""
import builtins
import typing

from weft.array_api.creation import asarray
from weft.array_api.elementwise import met
from weft.array_api.manipulation import axes_of
from weft.dtype import dtypes
from weft.tensor import Tensor

__all__ = ["argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero", "searchsorted", "sort", "take",
           "take_along_axis", "unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]


# ---- indexing

def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of x at these places of an axis."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: shape {x.shape} has not one axis: give the axis")
    a, = axes_of(x, 0 if axis is None else axis)
    return x[(slice(None),) * a + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """x at these places of an axis, place by place of the other axes, which broadcast."""
    a, = axes_of(x, axis)
    return x.take_along_dim(indices, a)


# ---- searching

def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the first of the largest is, of x flattened without an axis; NaN wins."""
    return x.argmax(axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the first of the smallest is, of x flattened without an axis; NaN wins."""
    return x.argmin(axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis=None, keepdims: builtins.bool = False) -> Tensor:
    """How many elements are not 0."""
    counted = (x != 0).cast(dtypes.default_int)
    return counted if axis == () else counted.sum(axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """For each axis the places of the elements that are not 0; reads back how many there are."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes has no places")
    return tuple(x.nonzero().unbind(1))


def searchsorted(x1: Tensor, x2, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where in x1, which ascends (in the order of `sorter`), each of x2 would stand: before ("left") or behind
    ("right") its equals."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is \"left\" or \"right\", not {side!r}")
    ascending, values = met(x1 if sorter is None else take(x1, sorter), x2)
    return ascending.searchsorted(values, side == "right")


def where(condition: Tensor, x1, x2, /) -> Tensor:
    """x1 where the condition holds, else x2; both may be numbers."""
    first = x1 if isinstance(x1, Tensor) or isinstance(x2, Tensor) else asarray(x1)
    return condition.where(*met(first, x2))


# ---- sorting

def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """In ascending or descending order along an axis; NaN counts as the largest."""
    return x.sort(axes_of(x, axis)[0], descending)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The places from which sort() takes; equals stay in their order."""
    return x.argsort(axes_of(x, axis)[0], descending)


# ---- sets

class UniqueAll(typing.NamedTuple):
    """unique_all()."""
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(typing.NamedTuple):
    """unique_counts()."""
    values: Tensor
    counts: Tensor


class UniqueInverse(typing.NamedTuple):
    """unique_inverse()."""
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct values, ascending; where each first is in x flattened; which of them each of x is; how often each
    is. Each NaN is distinct from all others."""
    ascending, places = x.reshape(-1).sort(0)
    count = x.numel()
    is_first = Tensor.ones(min(count, 1), dtype="bool").cat(ascending[1:] != ascending[:-1])
    begins = is_first.nonzero().reshape(-1)
    ends = begins[1:].cat(Tensor.full((min(count, 1),), count, dtype=begins.dtype))
    which = is_first.cast(places.dtype).cumsum(0) - 1
    inverse = places.zeros_like().scatter(0, places, which)
    return UniqueAll(ascending[begins], places[begins], inverse.reshape(x.shape), ends - begins)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct values, and how often each is."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct values, and which of them each of x is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct values, ascending."""
    return unique_all(x).values


def isin(x1, x2, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether each of x1 is (with `invert`: is not) among x2. NaN is nowhere."""
    elements, among = met(x1, x2)
    found = elements.isin(among.reshape(-1))
    return ~found if invert else found
