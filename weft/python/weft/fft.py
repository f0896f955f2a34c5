"""Discrete Fourier transforms. Complex numbers are a last axis of 2, which axes do not count."""
from weft._core.fft import fft, ifft, irfft, rfft

__all__ = ["fft", "ifft", "irfft", "rfft"]
