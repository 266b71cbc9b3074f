"""Special functions under PyTorch's names.

Examples
--------
>>> import gradscope as gs
>>> gs.special.expit(gs.tensor(0.0))
tensor(0.5000)
>>> gs.special.ndtr(gs.tensor([-1.0, 0.0, 1.0]))
tensor([0.1587, 0.5000, 0.8413])
"""

from __future__ import annotations

import math
from typing import Any

from .runtime import creation
from .runtime.ops.catalogue import PUBLIC
from .runtime.ops.keywords import as_function
from .runtime.ops.registry import OPERATORS
from .runtime.ops.writes import into
from .runtime.tensor import Tensor

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i1",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]

digamma = psi = PUBLIC["digamma"]
erf, erfc, erfinv = PUBLIC["erf"], PUBLIC["erfc"], PUBLIC["erfinv"]
exp2, expit, expm1 = PUBLIC["exp2"], PUBLIC["sigmoid"], PUBLIC["expm1"]
gammaln, multigammaln, polygamma = PUBLIC["lgamma"], PUBLIC["mvlgamma"], PUBLIC["polygamma"]
log1p, logit, logsumexp = PUBLIC["log1p"], PUBLIC["logit"], PUBLIC["logsumexp"]
log_softmax, softmax = PUBLIC["log_softmax"], PUBLIC["softmax"]
i0, round, sinc, xlogy = PUBLIC["i0"], PUBLIC["round"], PUBLIC["sinc"], PUBLIC["xlogy"]
entr, erfcx, ndtri, log_ndtr = (
    as_function(OPERATORS[f"special_{name}"].function) for name in ("entr", "erfcx", "ndtri", "log_ndtr")
)


def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the distribution function of the normal distribution: the probability of less than `input`.

    Far below 0 it loses its digits, as PyTorch's does; :func:`log_ndtr` does not.
    """
    if out is not None:
        return into(out, "special_ndtr", [input], lambda: ndtr(input))
    return (1 + erf(input * math.sqrt(0.5))) * 0.5


def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1."""
    function = OPERATORS["special_i1"].function
    return function(input) if out is None else into(out, "special_i1", [input], lambda: function(input))


def xlog1py(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``input * log1p(other)``, and 0 where `input` is 0; one of them may be a number."""
    tensor = input if isinstance(input, Tensor) else other
    first, second = (
        value if isinstance(value, Tensor) else creation.scalar_tensor(value, device=tensor.device)
        for value in (input, other)
    )
    return OPERATORS["special_xlog1py"].function(first, second, out=out)
