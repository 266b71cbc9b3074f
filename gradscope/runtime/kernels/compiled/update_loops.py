"""Steps of optimizers in one pass over memory; the formulas are in `optim.sgd` and `optim.adam`."""

from __future__ import annotations

import math

from .jit import IN1, OUT1, f4, i8, kernel


@kernel(OUT1, IN1, f4, f4)
def sgd(p, g, lr, decay):
    for i in range(p.size):
        p[i] -= (g[i] + p[i] * decay) * lr


@kernel(OUT1, IN1, OUT1, f4, f4, f4, f4, f4, i8)
def sgd_momentum(p, g, b, lr, decay, sign, momentum, keep, nesterov):
    for i in range(p.size):
        w = sign * g[i] + p[i] * decay
        b[i] = b[i] * momentum + w * keep
        p[i] -= (w + b[i] * momentum if nesterov else b[i]) * lr


@kernel(OUT1, IN1, OUT1, OUT1, f4, f4, f4, f4, f4, f4, f4, f4, f4)
def adam(p, g, mean, square, shrink, decay, sign, share, keep, rest, root, eps, step):
    for i in range(p.size):
        x = p[i] * shrink
        w = sign * g[i] + x * decay
        mean[i] += (w - mean[i]) * share
        square[i] = square[i] * keep + w * w * rest
        p[i] = x - mean[i] / (math.sqrt(square[i]) / root + eps) * step
