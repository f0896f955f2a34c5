"""The Python array API standard (https://data-apis.org/array-api/2024.12), of Tensors, without complex numbers.

    import weft.array_api as xp

    x = xp.linspace(0, 1, num=5)
    print(xp.sum(x * x, axis=-1))

Tensor.__array_namespace__() gives this module to functions of any array library's arrays (SciPy's, scikit-learn's).
"""
import math

from weft.array_api import (creation, data_types, elementwise, fft, info, linalg, manipulation, selection,
                            statistics)
from weft.array_api.creation import *  # noqa: F403
from weft.array_api.data_types import *  # noqa: F403
from weft.array_api.elementwise import *  # noqa: F403
from weft.array_api.info import __array_namespace_info__
from weft.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from weft.array_api.manipulation import *  # noqa: F403
from weft.array_api.selection import *  # noqa: F403
from weft.array_api.statistics import *  # noqa: F403

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

__all__ = ["__array_api_version__", "__array_namespace_info__", "e", "fft", "inf", "linalg", "matmul",
           "matrix_transpose", "nan", "newaxis", "pi", "tensordot", "vecdot"]
for _part in (creation, data_types, elementwise, manipulation, selection, statistics):
    __all__ += _part.__all__
