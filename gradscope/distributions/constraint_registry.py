"""Transforms from all real numbers to a region, for optimizing constrained parameters.

``biject_to(constraint)`` is invertible and knows its Jacobian; ``transform_to(constraint)`` may have more numbers than
the region has dimensions, and is the simpler one to descend along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """A table of which transform leads to which kind of region; call it with a constraint.

    See Also
    --------
    transforms.ComposeTransform, constraints.Constraint

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.distributions import constraints, transform_to
    >>> scale = transform_to(constraints.positive)(gs.zeros(2))
    >>> scale
    tensor([1., 1.])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Let ``factory(constraint)`` make the transform for constraints of a class.

        Parameters
        ----------
        constraint : type or Constraint
            A class of constraints, or one of them for its class.
        factory : callable, optional
            Without it the method is a decorator.

        Raises
        ------
        TypeError
            If it is no constraint.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}\n"
                "Regions are in gradscope.distributions.constraints."
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return the transform from real numbers to a region.

        Raises
        ------
        NotImplementedError
            If none is registered.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints\nRegister a transform for them: register()."
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _above(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if not hasattr(low, "_array") and not hasattr(high, "_array") and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


_IN_BOTH: dict[type[constraints.Constraint], Factory] = {
    constraints.Real: lambda constraint: transforms.identity_transform,
    constraints.GreaterThan: _above,
    constraints.GreaterThanEq: _above,
    constraints.LessThan: _below,
    constraints.Interval: _between,
    constraints.HalfOpenInterval: _between,
}
for _kind, _factory in _IN_BOTH.items():
    biject_to.register(_kind, _factory)
    transform_to.register(_kind, _factory)


@biject_to.register(constraints.IndependentConstraint)
def _biject_to_several(constraint: Any) -> Any:
    return transforms.IndependentTransform(biject_to(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.IndependentConstraint)
def _transform_to_several(constraint: Any) -> Any:
    return transforms.IndependentTransform(
        transform_to(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


def _cat_by(table: ConstraintRegistry) -> Factory:
    return lambda constraint: transforms.CatTransform(
        [table(part) for part in constraint.cseq], constraint.dim, constraint.lengths
    )


def _stack_by(table: ConstraintRegistry) -> Factory:
    return lambda constraint: transforms.StackTransform([table(part) for part in constraint.cseq], constraint.dim)


for _table in (biject_to, transform_to):
    _table.register(constraints.CorrCholesky, lambda constraint: transforms.CorrCholeskyTransform())
    _table.register(constraints.Cat, _cat_by(_table))
    _table.register(constraints.Stack, _stack_by(_table))
biject_to.register(constraints.Simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.Simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.LowerCholesky, lambda constraint: transforms.LowerCholeskyTransform())
for _kind in (constraints.PositiveDefinite, constraints.PositiveSemidefinite):
    transform_to.register(_kind, lambda constraint: transforms.PositiveDefiniteTransform())
del _kind, _factory, _table
