"""NumPy's functions of tensors: operators and what Tensor has a method for give tensors, lazily and with gradients;
everything else gets arrays of the values."""
from weft._core import Tensor

# What a ufunc is called: the operator of a tensor on the left, and of one on the right.
_OPERATORS = {
    "add": ("__add__", "__radd__"), "subtract": ("__sub__", "__rsub__"), "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"), "true_divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"), "remainder": ("__mod__", "__rmod__"),
    "divmod": ("__divmod__", "__rdivmod__"), "power": ("__pow__", "__rpow__"), "matmul": ("__matmul__", "__rmatmul__"),
    "bitwise_and": ("__and__", "__rand__"), "bitwise_or": ("__or__", "__ror__"), "bitwise_xor": ("__xor__", "__rxor__"),
    "left_shift": ("__lshift__", "__rlshift__"), "right_shift": ("__rshift__", "__rrshift__"),
    "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"), "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"), "equal": ("__eq__", "__eq__"), "not_equal": ("__ne__", "__ne__"),
}
_UNARY = {"rint": Tensor.round, "invert": Tensor.bitwise_not}
# They need no values.
_OF_SHAPES = {"shape": lambda x: x.shape, "ndim": lambda x: x.ndim, "size": lambda x: x.numel()}


def _arrays(x):
    """With arrays in the place of tensors, in lists and dicts too."""
    if isinstance(x, Tensor):
        return x.numpy()
    if isinstance(x, (list, tuple)):
        return type(x)(map(_arrays, x))
    return {key: _arrays(member) for key, member in x.items()} if isinstance(x, dict) else x


def _of_tensors(name: str, inputs: tuple):
    """The result as tensors; NotImplemented where Tensor has nothing of this name."""
    if name in _OPERATORS:
        of_left, of_right = _OPERATORS[name]
        if isinstance(inputs[0], Tensor):
            return getattr(inputs[0], of_left)(inputs[1])
        return getattr(inputs[1], of_right)(inputs[0])
    method = _UNARY.get(name) or getattr(Tensor, name, None)
    if method is None:
        return NotImplemented
    first = inputs[0] if isinstance(inputs[0], Tensor) else Tensor(inputs[0])
    return method(first, *inputs[1:])


def array_ufunc(self, ufunc, method, *inputs, **options):
    """Tensor.__array_ufunc__: NumPy's enhancement proposal 13."""
    if any(isinstance(x, Tensor) for x in options.get("out", ())):
        raise TypeError("a Tensor cannot be NumPy's out=: assign to it")
    if method == "__call__" and not options:
        found = _of_tensors(ufunc.__name__, inputs)
        if found is not NotImplemented:
            return found
    return getattr(ufunc, method)(*_arrays(inputs), **_arrays(options))


def array_function(self, function, types, args, options):
    """Tensor.__array_function__: NumPy's enhancement proposal 18."""
    if function.__name__ in _OF_SHAPES and len(args) == 1 and not options:
        return _OF_SHAPES[function.__name__](args[0])
    return function(*_arrays(args), **_arrays(options))
