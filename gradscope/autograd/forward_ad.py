"""Forward-mode derivatives: dual tensors, a value and its tangent that travel together.

Inside a level every operator computes, beside its result, the result's derivative along the tangents of its operands
(see :mod:`gradscope.runtime.ops.execution.forward_mode`). One forward pass so yields a Jacobian times a vector,
without a graph; run over a backward pass it yields Hessians times vectors.

Examples
--------
>>> import gradscope as gs
>>> from gradscope.autograd import forward_ad
>>> x, v = gs.tensor([1.0, 2.0]), gs.tensor([1.0, 0.0])
>>> with forward_ad.dual_level():
...     dual = forward_ad.make_dual(x, v)
...     forward_ad.unpack_dual(dual * dual)
UnpackedDualTensor(primal=tensor([1., 4.]), tangent=tensor([2., 0.]))
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..runtime import state
from ..runtime.memory.dtype import INEXACT
from ..runtime.modes import _GradMode
from ..runtime.tensor import tangents
from ..runtime.tensor.tensor import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "set_fwd_grad_enabled",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor.

    Attributes
    ----------
    primal : Tensor
        The value, without a tangent.
    tangent : Tensor or None
        Of the value's shape; None for a tensor that no tangent has reached.

    See Also
    --------
    unpack_dual : returns one.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     parts = forward_ad.unpack_dual(forward_ad.make_dual(gs.tensor(3.0), gs.tensor(1.0)) ** 2)
    >>> parts.primal, parts.tangent
    (tensor(9.), tensor(6.))
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open the level, 0: from here on dual tensors can be made, and operators compute tangents.

    Raises
    ------
    RuntimeError
        If it is open: levels do not nest.

    See Also
    --------
    exit_dual_level, dual_level

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> tangent = forward_ad.unpack_dual(forward_ad.make_dual(gs.tensor(3.0), gs.tensor(1.0)) * 2).tangent
    >>> forward_ad.exit_dual_level(level=level)
    >>> tangent
    tensor(2.)
    """
    if tangents.level is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment\n"
            "Leave the open level first; for second derivatives run forward mode over backward."
        )
    tangents.enter()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level; all tangents in it are dropped.

    Raises
    ------
    RuntimeError
        If it is not open, or `level` is another one.

    See Also
    --------
    enter_dual_level : opens it.
    dual_level : opens it for a block.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> dual = forward_ad.make_dual(gs.tensor(3.0), gs.tensor(1.0))
    >>> forward_ad.exit_dual_level(level=level)
    >>> with forward_ad.dual_level():
    ...     print(forward_ad.unpack_dual(dual).tangent)
    None
    """
    if level not in (None, _current_level()):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported.\n"
            f"It is level {_current_level()}; -1 is none."
        )
    if tangents.level is None:
        raise RuntimeError("Dual level must be a positive number.\nNo level is open: enter_dual_level() opens one.")
    tangents.leave()


class dual_level(_GradMode):  # noqa: N801 - PyTorch's name
    """Context manager and decorator: a level that is open inside.

    See Also
    --------
    make_dual, func.jvp

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd.forward_ad import dual_level, make_dual, unpack_dual
    >>> with dual_level():
    ...     y = make_dual(gs.tensor(3.0), gs.tensor(1.0)) ** 2
    ...     print(unpack_dual(y).tangent)
    tensor(6.)
    >>> print(unpack_dual(y).tangent)
    None
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc_info: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a view of `tensor` that carries `tangent`.

    Parameters
    ----------
    tensor, tangent : Tensor
        Of one shape, floating-point or complex. The tangent is carried as it is, and written when the dual tensor is
        written in place; one whose strides differ from those of `tensor` is copied.
    level : int, optional
        The open level unless given.

    Returns
    -------
    Tensor
        Recorded: its history leads to `tensor`.

    Raises
    ------
    RuntimeError
        Outside a level, for different shapes, and where `tensor` or `tangent` is a dual tensor already.
    ValueError
        For a dtype that has no derivatives.

    See Also
    --------
    unpack_dual, dual_level

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(gs.tensor(3.0), gs.tensor(1.0))
    ...     print(forward_ad.unpack_dual(dual * dual).tangent)
    tensor(6.)
    """
    if tangents.level is None or (level is not None and level < 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        _check_tensor("make_dual", name, value)
        if value._dtype.kind not in INEXACT:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    _check_pair(tensor, tangent)
    dual = tangents.primal_of(tensor)
    if not state.local.inference:
        tangents.attach(dual, tangents.fitted(tangent, dual))
    return dual


def _check_pair(tensor: Tensor, tangent: Tensor) -> None:
    """Raise where `tangent` cannot be the tangent of `tensor`."""
    if tangents.tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported.\nUse unpack_dual(tensor).primal."
        )
    if tangents.tangent_of(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported.\n"
            "Use unpack_dual(tangent).primal."
        )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tangent.is_complex() and not tensor.is_complex():
        raise RuntimeError(
            f"Expected the tangent of a real tensor to be real, but got {tangent.dtype} for a tensor of "
            f"{tensor.dtype}\nUse tangent.real."
        )


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a dual tensor's value, as a view without tangent, and its tangent (None if it has none).

    Raises
    ------
    TypeError
        If `tensor` is no tensor.

    See Also
    --------
    make_dual

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(gs.tensor(3.0), gs.tensor(1.0))
    ...     print(forward_ad.unpack_dual(dual.exp()).tangent)
    tensor(20.0855)
    """
    if tangents.level is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    _check_tensor("unpack_dual", "tensor", tensor)
    return UnpackedDualTensor(tangents.primal_of(tensor), tangents.tangent_of(tensor))


def _check_tensor(function: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{function}(): argument '{name}' must be Tensor, not {type(value).__name__}")


def _current_level() -> int:
    """Return the number of the open level, or -1."""
    return -1 if tangents.level is None else 0


class set_fwd_grad_enabled(_GradMode):  # noqa: N801 - named as PyTorch's private one
    """Set whether this thread computes tangents, at once and, as a context manager, until the end of the block.

    Where it is off no tensor shows a tangent; those made before have theirs again when it is back on.

    See Also
    --------
    set_grad_enabled

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import forward_ad
    >>> with forward_ad.dual_level(), forward_ad.set_fwd_grad_enabled(False):
    ...     dual = forward_ad.make_dual(gs.tensor(3.0), gs.tensor(1.0))
    ...     print(forward_ad.unpack_dual(dual * 2).tangent)
    None
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before = state.local.forward_grad
        state.local.forward_grad = mode

    def clone(self) -> set_fwd_grad_enabled:
        """Return a fresh manager of the same mode."""
        return type(self)(self.mode)

    def __call__(self, function: Any) -> Any:
        """Decorate `function`; the mode is not set outside it."""
        state.local.forward_grad = self._before
        return super().__call__(function)

    def __enter__(self) -> None:
        state.local.forward_grad = self.mode

    def __exit__(self, *exc_info: object) -> None:
        state.local.forward_grad = self._before


_set_fwd_grad_enabled = set_fwd_grad_enabled
