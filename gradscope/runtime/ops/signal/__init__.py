"""Fourier transforms, and windows for them.

- :mod:`~.fft`: ``fft`` and its relatives
- :mod:`~.stft`: short-time Fourier transforms, and windows
"""
