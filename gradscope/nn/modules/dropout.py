"""Dropout as modules."""

from __future__ import annotations

from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """Base of the kinds of dropout: a probability, and whether to write into the input."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, put elements to zero with probability `p` and divide the others by ``1 - p``.

    Parameters
    ----------
    inplace : bool
        Write into the input.

    See Also
    --------
    Dropout2d, AlphaDropout, nn.functional.dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Dropout(0.5).eval()(gs.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the thinned input."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Dropout of whole channels of signals.

    See Also
    --------
    Dropout, nn.functional.dropout1d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Dropout1d(0.5)(gs.ones(2, 3, 4)).shape
    gradscope.Size([2, 3, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the thinned input."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Dropout of whole channels of images.

    See Also
    --------
    Dropout, nn.functional.dropout2d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Dropout2d(0.5)(gs.ones(2, 3, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the thinned input."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Dropout of whole channels of volumes.

    See Also
    --------
    Dropout, nn.functional.dropout3d

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Dropout3d(0.5)(gs.ones(2, 3, 4, 4, 4)).shape
    gradscope.Size([2, 3, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the thinned input."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """In training, put elements to where SELU saturates, with probability `p`, and keep mean 0 and variance 1.

    See Also
    --------
    SELU, Dropout, nn.functional.alpha_dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.AlphaDropout(0.5).eval()(gs.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the thinned input."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """:class:`AlphaDropout` of whole channels.

    See Also
    --------
    AlphaDropout, nn.functional.feature_alpha_dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.FeatureAlphaDropout(0.5)(gs.ones(2, 3, 4)).shape
    gradscope.Size([2, 3, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the thinned input."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
