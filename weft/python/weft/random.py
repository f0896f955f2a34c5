"""Random numbers of keys, without a state: the same key gives the same numbers for ever, and JAX's bits.

    key = weft.random.key(0)
    a, b = weft.random.split(key)
    noise = weft.random.uniform(a, (3, 4))

Tensor.rand() and its like draw from a sequence that Tensor.manual_seed() begins.
"""
from typing import Any

from weft import _core, dtypes

__all__ = ["bits", "fold_in", "key", "split", "uniform"]


def key(seed: int) -> _core.Tensor:
    """uint32 (2): jax.random.PRNGKey."""
    return _core.random_key(seed)


def split(key: _core.Tensor, num: int = 2) -> _core.Tensor:
    """uint32 (num, 2): keys that have nothing to do with each other or with this one."""
    return _core.split_key(key, num)


def fold_in(key: _core.Tensor, data: int) -> _core.Tensor:
    """uint32 (2): the key of step number data."""
    return _core.fold_in(key, data)


def bits(key: _core.Tensor, shape: Any = (), dtype: Any = dtypes.uint32) -> _core.Tensor:
    """Random bits: uint8, uint16, uint32 or uint64."""
    return _core.keyed_bits(key, shape, dtype)


def uniform(key: _core.Tensor, shape: Any = (), dtype: Any = dtypes.float32) -> _core.Tensor:
    """Numbers in [0, 1): float32 or float64."""
    return _core.keyed_uniform(key, shape, dtype)
