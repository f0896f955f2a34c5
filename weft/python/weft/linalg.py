"""Linear algebra on matrices (..., rows, columns), by NumPy's names."""
from weft._core.linalg import (cholesky, det, eig, eigh, inv, lstsq, lu, matrix_power, pinv, qr, slogdet, solve,
                               solve_triangular, svd, trace)

__all__ = ["cholesky", "det", "eig", "eigh", "inv", "lstsq", "lu", "matrix_power", "pinv", "qr", "slogdet", "solve",
           "solve_triangular", "svd", "trace"]
