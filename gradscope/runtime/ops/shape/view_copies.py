"""Copies of views: what a view shows, in memory of its own, under the name of the view and ``_copy``."""

from __future__ import annotations

from ...memory import dtype as dtypes
from ...tensor.tensor import Tensor
from ..declaration.annotations import Dims, DType, Formula, Sizes
from ..declaration.registry import OPERATORS, Operator, operator, public
from ..execution import inplace_and_out


def _copied(view: Operator) -> Formula:
    """Return the forward that copies what a view's forward returns."""
    if view.output_list:
        return lambda xp, *arguments: [part.copy() for part in view.run_forward(xp, *arguments)]
    return lambda xp, *arguments: view.run_forward(xp, *arguments).copy()


def _declare(view: Operator, name: str) -> None:
    operator(
        view.schema.replace(view.name, name, 1),
        _copied(view),
        derivatives=view.derivatives,
        output_list=view.output_list,
        node=f"{view.node_name}_copy",
        method=False,
        out=True,
        doc=f"Copy what :func:`{view.name.partition('.')[0]}` shows.",
        samples=view.samples,
        reference=view.reference,
        supports=view.supports,
    )


for _view, _name in (
    ("alias", "alias_copy"),
    ("as_strided.size", "as_strided_copy"),
    ("diagonal", "diagonal_copy"),
    ("expand.size", "expand_copy"),
    ("permute.dims", "permute_copy"),
    ("select", "select_copy"),
    ("slice", "slice_copy"),
    ("split.size", "split_copy"),
    ("split.sizes", "split_with_sizes_copy"),
    ("squeeze.all", "squeeze_copy.all"),
    ("squeeze.dim", "squeeze_copy.dim"),
    ("squeeze.dims", "squeeze_copy.dims"),
    ("t", "t_copy"),
    ("transpose", "transpose_copy"),
    ("unbind", "unbind_copy"),
    ("unfold", "unfold_copy"),
    ("unsqueeze", "unsqueeze_copy"),
    ("view.size", "view_copy.size"),
    ("view_as_real", "view_as_real_copy"),
):
    _declare(OPERATORS[_view], _name)


@public(method=False)
def squeeze_copy(self: Tensor, dim: Dims = None, *, out: Tensor | None = None) -> Tensor:
    """Copy what :func:`squeeze` shows.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.squeeze_copy(gs.zeros(1, 3)).shape
    gradscope.Size([3])
    """
    if dim is None:
        return OPERATORS["squeeze_copy.all"].function(self, out=out)
    form = "dim" if hasattr(dim, "__index__") else "dims"
    return OPERATORS[f"squeeze_copy.{form}"].function(self, dim, out=out)


@public(method=False)
def view_copy(self: Tensor, size: Sizes = None, *, dtype: DType = None, out: Tensor | None = None) -> Tensor:
    """Copy what :meth:`view` shows, by a size or a dtype.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.view_copy(gs.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    dtype = size if isinstance(size, dtypes.dtype) else dtype
    if dtype is None:
        return OPERATORS["view_copy.size"].function(self, size, out=out)
    if out is not None:
        return inplace_and_out.into(out, "view_copy", [self], lambda: view_copy(self, dtype), exact=True)
    return self.view(dtype).clone()
