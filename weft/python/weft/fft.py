"""Discrete Fourier transforms. Complex numbers are a last axis of 2, which axes do not count."""
from weft._core.fft import (fft, fftfreq, fftn, fftshift, hamming_window, hann_window, ifft, ifftn, ifftshift, irfft,
                            istft, rfft, rfftfreq, stft)

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hamming_window", "hann_window", "ifft", "ifftn", "ifftshift",
           "irfft", "istft", "rfft", "rfftfreq", "stft"]
