"""Padding as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Padding(Module):
    """Base of pads of any number of dimensions: one number for all sides, or one for each."""

    spatial: int
    mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.spatial) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"{self.padding}"


class _ConstantPad(_Padding):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Pad the last dimension with a number.

    See Also
    --------
    ReflectionPad1d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ConstantPad1d((1, 2), 7.0)(gs.tensor([[1.0, 2.0]]))
    tensor([[7., 1., 2., 7., 7.]])
    """

    spatial = 1


class ConstantPad2d(_ConstantPad):
    """Pad the last two dimensions with a number.

    See Also
    --------
    ReflectionPad2d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ConstantPad2d(1, 7.0)(gs.zeros(1, 1))
    tensor([[7., 7., 7.],
            [7., 0., 7.],
            [7., 7., 7.]])
    """

    spatial = 2


class ConstantPad3d(_ConstantPad):
    """Pad the last three dimensions with a number.

    See Also
    --------
    ReflectionPad3d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ConstantPad3d(1, 7.0)(gs.zeros(1, 2, 2, 2)).shape
    gradscope.Size([1, 4, 4, 4])
    """

    spatial = 3


class ZeroPad1d(ConstantPad1d):
    """Pad the last dimension with zeros.

    See Also
    --------
    ConstantPad1d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ZeroPad1d((1, 2))(gs.tensor([[1.0, 2.0]]))
    tensor([[0., 1., 2., 0., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pad the last two dimensions with zeros.

    See Also
    --------
    ConstantPad2d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ZeroPad2d(1)(gs.ones(1, 1, 1))
    tensor([[[0., 0., 0.],
             [0., 1., 0.],
             [0., 0., 0.]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pad the last three dimensions with zeros.

    See Also
    --------
    ConstantPad3d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ZeroPad3d(1)(gs.ones(1, 2, 2, 2)).shape
    gradscope.Size([1, 4, 4, 4])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"{self.padding}"


class ReflectionPad1d(_Padding):
    """Pad signals (N, C, L) by reflection at the border, see :class:`ReflectionPad2d`.

    See Also
    --------
    ConstantPad1d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReflectionPad1d(2)(gs.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    spatial, mode = 1, "reflect"


class ReflectionPad2d(_Padding):
    """Pad images (N, C, H, W) by reflection at the border, which itself is not repeated.

    Parameters
    ----------
    padding : int or sequence of int
        One number for all sides, or left, right, top and bottom.

    See Also
    --------
    ConstantPad2d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReflectionPad2d((1, 1, 0, 0))(gs.arange(3.0).reshape(1, 1, 3))
    tensor([[[1., 0., 1., 2., 1.]]])
    """

    spatial, mode = 2, "reflect"


class ReflectionPad3d(_Padding):
    """Pad volumes (N, C, D, H, W) by reflection at the border, see :class:`ReflectionPad2d`.

    See Also
    --------
    ConstantPad3d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReflectionPad3d(1)(gs.ones(1, 1, 2, 2, 2)).shape
    gradscope.Size([1, 1, 4, 4, 4])
    """

    spatial, mode = 3, "reflect"


class ReplicationPad1d(_Padding):
    """Pad signals (N, C, L) with their first and last element.

    See Also
    --------
    ConstantPad1d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReplicationPad1d(2)(gs.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 1., 2., 3., 3., 3.]])
    """

    spatial, mode = 1, "replicate"


class ReplicationPad2d(_Padding):
    """Pad images (N, C, H, W) with their border.

    See Also
    --------
    ConstantPad2d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReplicationPad2d(1)(gs.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.],
             [1., 1., 2., 2.],
             [1., 1., 2., 2.]]])
    """

    spatial, mode = 2, "replicate"


class ReplicationPad3d(_Padding):
    """Pad volumes (N, C, D, H, W) with their border.

    See Also
    --------
    ConstantPad3d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReplicationPad3d(1)(gs.ones(1, 1, 2, 2, 2)).shape
    gradscope.Size([1, 1, 4, 4, 4])
    """

    spatial, mode = 3, "replicate"


class _CircularPad(_Padding):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        if input.ndim not in (self.spatial + 1, self.spatial + 2):
            raise ValueError(f"expected {self.spatial + 1}D or {self.spatial + 2}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Pad signals (N, C, L) with what stands at the other end.

    See Also
    --------
    ConstantPad1d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CircularPad1d(1)(gs.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    spatial = 1


class CircularPad2d(_CircularPad):
    """Pad images (N, C, H, W) with what stands at the other side.

    See Also
    --------
    ConstantPad2d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CircularPad2d(1)(gs.ones(1, 1, 2, 2)).shape
    gradscope.Size([1, 1, 4, 4])
    """

    spatial = 2


class CircularPad3d(_CircularPad):
    """Pad volumes (N, C, D, H, W) with what stands at the other side.

    See Also
    --------
    ConstantPad3d, nn.functional.pad

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CircularPad3d(1)(gs.ones(1, 1, 2, 2, 2)).shape
    gradscope.Size([1, 1, 4, 4, 4])
    """

    spatial = 3
