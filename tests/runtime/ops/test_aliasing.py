"""Functions of shapes return the tensor itself, a view of it or a copy where PyTorch's do."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs

LAYOUTS = {
    "rows": lambda m: m.arange(24.0).reshape(2, 3, 4),
    "columns": lambda m: m.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0),
    "part": lambda m: m.arange(40.0).reshape(2, 4, 5)[:, 1:, :4],
    "steps": lambda m: m.arange(12.0)[1::2],
    "one column": lambda m: m.arange(6.0).reshape(3, 2)[:, 0],
    "matrix": lambda m: m.arange(6.0).reshape(2, 3),
    "turned matrix": lambda m: m.arange(6.0).reshape(2, 3).t(),
    "expanded": lambda m: m.arange(3.0).expand(2, 3),
    "expanded column": lambda m: m.arange(3.0).reshape(3, 1).expand(3, 4),
    "one element": lambda m: m.arange(4.0)[2:3],
    "ones": lambda m: m.arange(6.0).reshape(1, 2, 1, 3),
    "ones of a part": lambda m: m.arange(12.0).reshape(3, 4)[1:2, ::3],
    "number": lambda m: m.tensor(2.0),
    "number of a part": lambda m: m.arange(4.0)[3],
    "nothing": lambda m: m.zeros(0),
    "no rows": lambda m: m.zeros(0, 3),
    "no columns": lambda m: m.zeros(3, 0, 2),
    "images": lambda m: m.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=m.channels_last),
    "windows": lambda m: m.arange(5.0).unfold(0, 3, 1),
    "diagonal": lambda m: m.arange(9.0).reshape(3, 3).diagonal(),
    "integers": lambda m: m.arange(6).reshape(2, 3),
    "complex": lambda m: m.view_as_complex(m.arange(12.0).reshape(2, 3, 2)),
    "complex columns": lambda m: m.view_as_complex(m.arange(12.0).reshape(2, 3, 2)).t(),
    "history": lambda m: m.arange(6.0, requires_grad=True).reshape(2, 3) * 2,
    "turned history": lambda m: (m.arange(6.0, requires_grad=True).reshape(2, 3) * 2).t(),
}

USES = {
    "reshape(-1)": lambda m, x: x.reshape(-1),
    "reshape(shape)": lambda m, x: x.reshape(x.shape),
    "reshape(-1, 2)": lambda m, x: x.reshape(-1, 2),
    "reshape(1, -1)": lambda m, x: x.reshape(1, -1),
    "reshape_as": lambda m, x: x.reshape_as(x),
    "view(-1)": lambda m, x: x.view(-1),
    "view(shape)": lambda m, x: x.view(x.shape),
    "view(1, ...)": lambda m, x: x.view(1, *x.shape),
    "view_as": lambda m, x: x.view_as(x),
    "view(own dtype)": lambda m, x: x.view(x.dtype),
    "ravel": lambda m, x: x.ravel(),
    "flatten": lambda m, x: x.flatten(),
    "flatten(0, 1)": lambda m, x: x.flatten(0, 1),
    "flatten(1)": lambda m, x: x.flatten(1),
    "unflatten": lambda m, x: x.unflatten(-1, (1, -1)) if x.dim() else x,
    "contiguous": lambda m, x: x.contiguous(),
    "contiguous(channels_last)": lambda m, x: x.contiguous(memory_format=m.channels_last),
    "clone": lambda m, x: x.clone(),
    "expand(2, ...)": lambda m, x: x.expand(2, *x.shape),
    "expand(-1)": lambda m, x: x.expand(*[-1] * x.dim()),
    "expand_as": lambda m, x: x.expand_as(x),
    "broadcast_to": lambda m, x: m.broadcast_to(x, x.shape),
    "narrow": lambda m, x: x.narrow(0, 0, x.shape[0]),
    "narrow end": lambda m, x: x.narrow(-1, x.shape[-1] - 1, 1),
    "unfold": lambda m, x: x.unfold(-1, 2, 1),
    "diagonal": lambda m, x: x.diagonal(),
    "diagonal(1)": lambda m, x: x.diagonal(1, -1, -2),
    "squeeze": lambda m, x: x.squeeze(),
    "squeeze(0)": lambda m, x: x.squeeze(0),
    "unsqueeze(-1)": lambda m, x: x.unsqueeze(-1),
    "movedim": lambda m, x: x.movedim(0, -1),
    "movedim nowhere": lambda m, x: x.movedim(0, 0),
    "swapaxes": lambda m, x: x.swapaxes(0, -1),
    "transpose": lambda m, x: x.transpose(-1, -2),
    "transpose nowhere": lambda m, x: x.transpose(0, 0),
    "permute nowhere": lambda m, x: x.permute(*range(x.dim())),
    "t": lambda m, x: x.t(),
    "T": lambda m, x: x.t() if x.dim() > 2 else x.T,
    "mT": lambda m, x: x.mT,
    "mH": lambda m, x: x.real.mH,
    "H": lambda m, x: x.real.H,
    "adjoint": lambda m, x: x.real.adjoint(),
    "split": lambda m, x: x.split(1)[0],
    "split(sizes)": lambda m, x: x.split([x.shape[-1]], -1)[0],
    "chunk": lambda m, x: x.chunk(2, -1)[0],
    "tensor_split": lambda m, x: x.tensor_split(2)[0],
    "unsafe_split": lambda m, x: x.unsafe_split(1)[0],
    "unsafe_chunk": lambda m, x: x.unsafe_chunk(1)[0],
    "hsplit": lambda m, x: x.hsplit(1)[0],
    "unbind": lambda m, x: x.unbind()[0],
    "select": lambda m, x: x.select(-1, 0),
    "x[...]": lambda m, x: x[...],
    "x[:]": lambda m, x: x[:],
    "x[None]": lambda m, x: x[None],
    "x[0]": lambda m, x: x[0],
    "x[0:1]": lambda m, x: x[0:1],
    "x[..., ::2]": lambda m, x: x[..., ::2],
    "x[[0]]": lambda m, x: x[[0]],
    "to(own dtype)": lambda m, x: x.to(x.dtype),
    "to(own dtype, copy)": lambda m, x: x.to(x.dtype, copy=True),
    "to(channels_last)": lambda m, x: x.to(memory_format=m.channels_last),
    "type_as": lambda m, x: x.type_as(x),
    "cpu": lambda m, x: x.cpu(),
    "float": lambda m, x: x.float(),
    "detach": lambda m, x: x.detach(),
    "data": lambda m, x: x.data,
    "real": lambda m, x: x.real,
    "imag": lambda m, x: x.imag,
    "conj": lambda m, x: x.real.conj(),
    "view_as_real": lambda m, x: m.view_as_real(x),
    "alias": lambda m, x: m.Tensor(x),
    "atleast_1d": lambda m, x: m.atleast_1d(x),
    "atleast_2d": lambda m, x: m.atleast_2d(x),
    "atleast_3d": lambda m, x: m.atleast_3d(x),
    "as_strided": lambda m, x: x.as_strided(x.shape, x.stride()),
    "as_strided(0)": lambda m, x: x.as_strided((1,), (1,), 0),
    "as_tensor": lambda m, x: m.as_tensor(x),
    "asarray": lambda m, x: m.asarray(x.detach()),
    "positive": lambda m, x: x.positive(),
    "repeat": lambda m, x: x.repeat(*[1] * x.dim()),
    "tile": lambda m, x: x.tile(1),
    "flip": lambda m, x: x.flip(0),
    "roll": lambda m, x: x.roll(0),
    "meshgrid": lambda m, x: m.meshgrid(x.real.reshape(-1), x.real.reshape(-1), indexing="ij")[0],
    "broadcast_tensors": lambda m, x: m.broadcast_tensors(x, x)[0],
    "cat": lambda m, x: m.cat([x]),
    "sum_to_size": lambda m, x: x.sum_to_size(x.shape),
    "requires_grad_": lambda m, x: x.requires_grad_(False) if x.is_leaf else x,
    "resolve_conj": lambda m, x: x.resolve_conj(),
    "linalg.diagonal": lambda m, x: m.linalg.diagonal(x),
    "matrix_transpose": lambda m, x: m.transpose(x, -2, -1),
    "rot90": lambda m, x: m.rot90(x, 0),
    "dsplit": lambda m, x: x.dsplit(1)[0],
    "vsplit": lambda m, x: x.vsplit(1)[0],
    "nan_to_num": lambda m, x: x.nan_to_num(),
    "dropout": lambda m, x: m.nn.functional.dropout(x.real, 0.5, False),
    "pad nowhere": lambda m, x: m.nn.functional.pad(x, (0, 0)),
    "numpy": lambda m, x: m.from_numpy(x.detach().numpy()),
}  # fmt: skip

# The copy lies in memory otherwise than PyTorch's does.
OTHER_STRIDES = {
    ("x[[0]]", "columns"),
    ("x[[0]]", "images"),
    ("pad nowhere", "columns"),
    ("pad nowhere", "turned matrix"),
    ("pad nowhere", "complex columns"),
    ("pad nowhere", "turned history"),
    ("to(own dtype, copy)", "expanded"),
    ("nan_to_num", "expanded"),
}

# A number has no size that these could be given: expand(), permute() and repeat() without arguments.
NO_ARGUMENTS = {"expand(-1)", "permute nowhere", "repeat"}


def facts(m: Any, layout: str, use: Any) -> dict[str, Any] | str:
    """Return what `use` makes of a tensor: whose memory it has and how it lies there, or the class of its error."""
    x = LAYOUTS[layout](m)
    try:
        result = use(m, x)
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    shared = result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    told = {
        "itself": result is x,
        "shape": tuple(result.shape),
        "view": result._is_view(),
        "leaf": result.is_leaf,
        "node": result.grad_fn and result.grad_fn.name().removeprefix("torch::autograd::"),
    }
    if result.numel():  # elements that there are not lie nowhere
        steps = [step for size, step in zip(result.shape, result.stride(), strict=True) if size > 1]
        told |= {"shared": shared, "offset": result.storage_offset(), "steps": steps}
        result.detach().as_strided((1,), (1,), result.storage_offset()).mul_(2)
        told["versions"] = (x._version, result._version)
        told["values"] = x.tolist()
    return told


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch 2.13 will refuse .T of other than matrices
@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_alias_where_pytorchs_do(torch: Any, layout: str) -> None:
    different = {}
    for name, use in USES.items():
        if layout.startswith("number") and name in NO_ARGUMENTS:
            continue
        expected, actual = facts(torch, layout, use), facts(gs, layout, use)
        if (name, layout) in OTHER_STRIDES:
            assert expected.pop("steps") != actual.pop("steps"), name
        if actual != expected:
            different[name] = (expected, actual)
    assert different == {}
