"""Functions that arrange elements anew."""
import builtins
import math

from weft.array_api.data_types import result_type
from weft.tensor import Tensor

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose",
           "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The shape in which arrays of these meet."""
    rank = max(map(len, shapes), default=0)
    met = []
    for sizes in zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes)):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise ValueError(f"broadcast_shapes: {', '.join(map(str, shapes))} do not broadcast: an axis has sizes "
                             f"{' and '.join(map(str, sorted(others)))}")
        met.append(others.pop() if others else 1)
    return tuple(met)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """x with axes of size 1 repeated, and new ones in front."""
    if broadcast_shapes(x.shape, shape) != tuple(shape):
        raise ValueError(f"broadcast_to: {x.shape} does not broadcast to {tuple(shape)}")
    return x.expand(shape)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """All in the shape they meet in."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [x.expand(shape) for x in arrays]


def _of_one_dtype(arrays) -> list[Tensor]:
    dtype = result_type(*arrays)
    return [x.cast(dtype) for x in arrays]


def concat(arrays, /, *, axis: int | None = 0) -> Tensor:
    """One behind the other along an axis; flattened where it is None."""
    if not arrays:
        raise ValueError("concat: there are no arrays: give one or more")
    first, *others = [x.reshape(-1) if axis is None else x for x in _of_one_dtype(arrays)]
    return first.cat(*others, dim=axis or 0)


def stack(arrays, /, *, axis: int = 0) -> Tensor:
    """One behind the other along a new axis."""
    if not arrays:
        raise ValueError("stack: there are no arrays: give one or more")
    first, *others = _of_one_dtype(arrays)
    return first.stack(*others, dim=axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return tuple(x.unbind(axis))


def axes_of(x: Tensor, axis, rank: int | None = None) -> tuple[int, ...]:
    """Axes counted from the front; an IndexError for one that x (or an array of this rank) has not."""
    rank = x.ndim if rank is None else rank
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    for a in given:
        if not -rank <= a < rank:
            raise IndexError(f"axis {a} is out of range for {rank} axes: shape {x.shape}")
    found = tuple(a % rank for a in given)
    if len(set(found)) != len(found):
        raise ValueError(f"axes {tuple(given)} name one twice: shape {x.shape}")
    return found


def expand_dims(x: Tensor, /, axis) -> Tensor:
    """With new axes of size 1 at these places of the result."""
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    for a in sorted(axes_of(x, axis, x.ndim + count)):
        x = x.unsqueeze(a)
    return x


def squeeze(x: Tensor, /, axis) -> Tensor:
    """Without these axes, which have size 1."""
    gone = axes_of(x, axis)
    for a in gone:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} of shape {x.shape} has more or less than one element")
    return x.reshape([size for a, size in enumerate(x.shape) if a not in gone])


def flip(x: Tensor, /, *, axis=None) -> Tensor:
    """In the opposite order along axes, all where none is given."""
    axes = tuple(range(x.ndim)) if axis is None else axes_of(x, axis)
    return x.flip(axes) if axes else x


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    return x.mT


def moveaxis(x: Tensor, source, destination, /) -> Tensor:
    """With axes at other places, the others in their order."""
    return x.movedim(axes_of(x, source), axes_of(x, destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """With axes in this order."""
    if len(axes) != x.ndim:
        raise ValueError(f"permute_dims: {tuple(axes)} are not as many axes as shape {x.shape} has")
    return x.permute(axes_of(x, tuple(axes))) if x.ndim else x


def repeat(x: Tensor, repeats, /, *, axis: int | None = None) -> Tensor:
    """Each element so many times, along an axis or of x flattened; `repeats` may be an array, one for each."""
    y, a = (x.reshape(-1), 0) if axis is None else (x, axes_of(x, axis)[0])
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = int(repeats.item())
    return y.repeat_interleave(repeats, a)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The same elements in another shape: a view of x, unless a copy is asked for. One size may be -1."""
    y = x.reshape(_without_unknown(x, tuple(shape)))
    return y.clone() if copy else y


def _without_unknown(x: Tensor, shape: tuple) -> tuple:
    """With the size for which -1 stands, also where there are no elements."""
    known = math.prod(size for size in shape if size != -1)
    if shape.count(-1) != 1 or known == 0 or x.numel() % known:
        return shape
    return tuple(x.numel() // known if size == -1 else size for size in shape)


def roll(x: Tensor, /, shift, *, axis=None) -> Tensor:
    """Elements moved on by so many places, the last ones to the front; of x flattened without an axis."""
    if x.numel() == 0:
        return x.clone()
    if axis is None:
        return x.reshape(-1).roll(shift % x.numel(), 0).reshape(x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes: give as many")
    for a, by in zip(axes, shifts):
        a, = axes_of(x, a)
        x = x.roll(by % int(x.shape[a]), a)
    return x


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x so many times along each axis, the last ones where there are fewer numbers."""
    return x.repeat((1,) * (x.ndim - len(repetitions)) + tuple(repetitions))
