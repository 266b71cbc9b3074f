"""Fourier transforms.

- :mod:`~.fft`: ``fft`` and its relatives
- :mod:`~.stft`: short-time Fourier transforms, and windows
"""
