"""One row per operation of Tensor: how it is called, what NumPy and PyTorch make of the same operands, the dtypes it
takes and gives, where it has a gradient, and the calls that must fail. operands.py says what the columns are."""
from every_op import creation, elementwise, losses, movement, products, reductions, selection  # noqa: F401
