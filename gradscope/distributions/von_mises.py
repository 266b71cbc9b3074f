"""The von Mises distribution of angles.

References
----------
D. J. Best, N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied Statistics 28, 1979.
K. V. Mardia, P. E. Jupp, "Directional statistics", 2000: density, circular mean and variance, entropy.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.modes import no_grad
from ..runtime.ops.random import random
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Von Mises distribution: of angles around a direction, in radians from -pi to pi.

    Parameters
    ----------
    loc : Tensor or float
        The direction, any angle.
    concentration : Tensor or float
        How near to it the angles are: of large ones the variance is its reciprocal, and 0 is uniform.

    See Also
    --------
    Normal

    Examples
    --------
    >>> import gradscope as gs
    >>> angles = gs.distributions.VonMises(gs.tensor(0.0), gs.tensor(4.0))
    >>> angles.log_prob(gs.tensor(0.0))
    tensor(-0.2628)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The circular variance, from 0 to 1."""
        return 1 - F.special_i1e(self.concentration) / F.special_i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, a function of the angle modulo 2 pi."""
        self._validate_sample(value)
        # I0 grows as exp(concentration) does, which i0e leaves out.
        towards = self.concentration * (F.cos(value - self.loc) - 1)
        return towards - math.log(2 * math.pi) - F.log(F.special_i0e(self.concentration))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw angles by rejection from a wrapped Cauchy distribution, in double precision."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, kappa = self.loc.double(), self.concentration.double()
            proposal = _proposal(kappa)
            angle = loc.new_zeros(shape)
            done = angle != angle
            while not done.all():
                u1, u2, u3 = random.rand(3, *shape, dtype=loc.dtype, device=loc.device).unbind()
                z = F.cos(math.pi * u1)
                f = (1 + proposal * z) / (proposal + z)
                c = kappa * (proposal - f)
                # Where a parameter is NaN every draw is accepted, or the loop would not end; the angle is NaN too.
                accepted = (c * (2 - c) > u2) | (F.log(c / u2) + 1 - c >= 0) | (f != f)
                angle = F.where(accepted & ~done, F.sign(u3 - 0.5) * F.acos(f), angle)
                done = done | accepted
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)


def _proposal(kappa: Tensor) -> Tensor:
    """Return the parameter of the distribution that is drawn from; by its series for small concentrations."""
    tau = 1 + F.sqrt(1 + 4 * kappa * kappa)
    rho = (tau - F.sqrt(2 * tau)) / (2 * kappa)
    return F.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))
