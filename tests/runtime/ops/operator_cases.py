"""What the operator tests stand on: samples in several dtypes, layouts and array modules, and their PyTorch twins."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import gradscope as gs
from gradscope.runtime.engine import backward
from gradscope.runtime.memory import device, dtype
from gradscope.runtime.ops.declaration.registry import OPERATORS, PUBLIC, Operator
from gradscope.runtime.tensor.math_bits import mark, resolve_bits
from gradscope.runtime.tensor.tensor import Tensor

Sample = tuple[tuple[Any, ...], dict[str, Any]]


def placed(torch: Any, indices: Any, dims: Any) -> list[Any]:
    """Return index tensors as aten takes them: one entry per dimension, None where there is none."""
    found = dict(zip(dims, indices, strict=True))
    return [found.get(axis) for axis in range(max(dims) + 1)]


# Operators that PyTorch has under another name, or with other arguments.


def _written_through(x: Any, src: Any, size: Any, stride: Any, offset: int | None = None) -> Any:
    """Return `x` after a write through a strided view of it."""
    x.as_strided(size, stride, offset).copy_(src)
    return x


COUNTERPARTS: dict[str, Callable[..., Any]] = {
    "as_strided.size": lambda t, x, size, stride, offset=None: x.as_strided(size, stride, offset),
    # PyTorch's own gradient keeps what was written over, and drops what was kept.
    "as_strided_scatter": lambda t, x, src, *part: _written_through(x.clone(), src, *part),
    "clone": lambda t, x, memory_format=None: x.clone(),
    "ctc_loss.examples": lambda t, *arguments: t.ops.aten._ctc_loss(*arguments)[0],
    "copy": lambda t, x, src: x.clone().copy_(src),
    "div.mode": lambda t, x, y, rounding_mode: t.div(x, y, rounding_mode=rounding_mode),
    "embedding_bag.bags": lambda t, weight, indices, offsets, *rest: t.ops.aten._embedding_bag(
        weight, indices, offsets, *rest[:2], False, *rest[2:]
    )[0],
    "embedding_rows": lambda t, weight, indices, *rest: t.ops.aten.embedding(weight, indices, *rest),
    "expand.size": lambda t, x, size: x.expand(size),
    "index": lambda t, x, indices, dims: t.ops.aten.index(x, placed(t, indices, dims)),
    "index_put": lambda t, x, indices, dims, values, accumulate=False: t.ops.aten.index_put(
        x, placed(t, indices, dims), values, accumulate
    ),
    "kl_div": lambda t, x, target, reduction, log_target: t.ops.aten.kl_div(
        x, target, reduction, log_target=log_target
    ),
    "linalg_cholesky_ex": lambda t, x, upper=False: t.linalg.cholesky_ex(x, upper=upper),
    "linalg_general_eigenvalues": lambda t, x: t.linalg.eigvals(x),
    "linalg_hermitian_eigenvalues": lambda t, x: t.linalg.eigvalsh(x),
    "linalg_lu_parts": lambda t, x: [t.linalg.lu(x)[i] for i in (1, 2, 0)],
    "linalg_singular_values": lambda t, x: t.linalg.svdvals(x),
    "linalg_svd": lambda t, x, full_matrices=False: t.linalg.svd(x, full_matrices),
    "lu_parts": lambda t, data, pivots: [t.lu_unpack(data, pivots)[i] for i in (1, 2, 0)],
    "multi_margin_loss": lambda t, *arguments: t.ops.aten.multi_margin_loss(*arguments),
    "multilabel_margin_loss": lambda t, *arguments: t.ops.aten.multilabel_margin_loss(*arguments),
    "nll_loss.plain": lambda t, x, target, reduction, ignore: t.ops.aten.nll_loss(x, target, None, reduction, ignore),
    "nll_loss.weighted": lambda t, x, target, weight, *rest: t.ops.aten.nll_loss(x, target, weight, *rest),
    "nll_loss2d.plain": lambda t, x, target, *rest: t.ops.aten.nll_loss2d(x, target, None, *rest),
    "permute.dims": lambda t, x, dims: x.permute(dims),
    "polygamma.order": lambda t, x, n: t.polygamma(n, x),
    "prelu.kernel": lambda t, x, weight: t.ops.aten._prelu_kernel(x, weight),
    "reshape_alias": lambda t, x, size: t.ops.aten._reshape_alias(x, size, t.empty(size).stride()),
    "scatter_strided": lambda t, x, length, stride, offset: t.zeros(length, dtype=x.dtype).index_add(
        0, t.arange(length).as_strided(x.shape, stride, offset).reshape(-1), x.reshape(-1)
    ),
    "select_backward": lambda t, g, size, dim, index: t.ops.aten.select_backward(g, size, dim, index),
    **{
        f"{kind}_pad{count}d": lambda t, x, pad, name=f"{kind}_pad{count}d": getattr(t.ops.aten, name)(x, pad)
        for kind in ("reflection", "replication")
        for count in (1, 2, 3)
    },
    "slice": lambda t, x, dim, start, end, step: t.ops.aten.slice(x, dim, start, end, step),
    "slice_backward": lambda t, g, *rest: t.ops.aten.slice_backward(
        g, rest[0], rest[1], 0 if rest[2] is None else rest[2], 2**62 if rest[3] is None else rest[3], rest[4]
    ),
    "soft_margin_loss": lambda t, *arguments: t.ops.aten.soft_margin_loss(*arguments),
    **{
        f"special_{name}": lambda t, *args, name=name: getattr(t.special, name)(*args)
        for name in (op.removeprefix("special_") for op in OPERATORS if op.startswith("special_"))
    },
    "split.size": lambda t, x, size, dim=0: x.split(size, dim),
    "split.sizes": lambda t, x, sizes, dim=0: x.split(sizes, dim),
    "squeeze.all": lambda t, x: x.squeeze(),
    "to.dtype": lambda t, x, kind: t.ops.aten._to_copy(x, dtype=kind),
    "transfer": lambda t, x, where, where_from: x.clone(),
    "unsafe_view": lambda t, x, size: t.ops.aten._unsafe_view(x.clone(), size),
    "view.dtype": lambda t, x, kind: x.view(kind),
    "view.size": lambda t, x, size: x.view(size),
}
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    for _form in ("Scalar", "Tensor"):
        COUNTERPARTS[f"{_name}.write_{_form}"] = lambda t, x, y, name=_name: getattr(x.clone(), name + "_")(y)
# Operators that PyTorch has under the same name, but not at its top.
_ATEN = """
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d
    upsample_bicubic2d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
    _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa im2col col2im
    max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
    adaptive_max_pool2d adaptive_max_pool3d max_unpool2d max_unpool3d fractional_max_pool2d fractional_max_pool3d
    _fft_c2c _fft_r2c _fft_c2r
"""
for _name in _ATEN.split():
    COUNTERPARTS[_name] = lambda t, *args, name=_name: getattr(t.ops.aten, name)(*args)
    if "upsample" in _name and "lanczos" not in _name:
        COUNTERPARTS[f"{_name}_backward"] = lambda t, *args, name=_name: getattr(t.ops.aten, f"{name}_backward")(*args)
# The others of torch.linalg have its names; ord=0 of this one has no gradient at all there, and one of zeros here.
ALSO_IN_LINALG = {name for name in OPERATORS if name.startswith("linalg_")} - {"linalg_vector_norm"}
# PyTorch has no derivatives of these copies among complex numbers.
NO_COMPLEX_DERIVATIVES = {"select_copy", "slice_copy"}
# CuPy has no Airy function and no LDL factors; tests/runtime/ops/ has the refusals, in test_special.py and test_ldl.py.
NOT_IN_CUPY = {"linalg_ldl_factor_ex", "linalg_ldl_solve", "special_airy_ai"}
# Operators whose node has another name in PyTorch, and why.
OTHER_NAMES = {
    "as_strided_scatter": "written through a view there, as PyTorch's own gradient is wrong",
    "kl_div": "PyTorch has no node of its own for it",
    "scatter_strided": "PyTorch has no such operator of its own",
    "transfer": "needs two devices",
    "mul.Scalar": "PyTorch's own functions multiply by numbers with it, and a user's call does not",
    "linear.bias": "PyTorch names it after the path its matrix product takes",
}


class Maker:
    """``make(*shape, low=, high=)`` for samples: tensors that require grad, the same ones for the same seed."""

    def __init__(self, seed: str, kind: str = "float64", *, requires_grad: bool = True) -> None:
        self.generator = numpy.random.default_rng(zlib.crc32(seed.encode()))
        self.kind = kind
        self.requires_grad = requires_grad

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0, dtype: Any = None) -> Tensor:
        kind = numpy.dtype(getattr(dtype, "numpy", dtype) if dtype is not None else self.kind)
        values = self.generator.uniform(low, high, shape)
        if kind.kind == "c":
            values = values + 1j * self.generator.uniform(low, high, shape)
        if kind.kind in "iub":
            values = numpy.floor(values)
        if dtype is not None and self.kind == "float32":
            kind = {"float64": numpy.dtype("float32"), "complex128": numpy.dtype("complex64")}.get(kind.name, kind)
        tensor = gs.from_numpy(numpy.asarray(values).astype(kind))
        return tensor.requires_grad_() if self.requires_grad and kind.kind in "fc" else tensor

    @property
    def finfo(self) -> Any:
        """The limits of the dtype of its tensors."""
        return numpy.finfo(self.kind)

    def of(self, values: Any, dtype: Any = None, shape: tuple[int, ...] | None = None) -> Tensor:
        """Return a tensor of given values."""
        array = numpy.array(values, dtype=numpy.dtype(getattr(dtype, "numpy", dtype) or self.kind))
        array = array if shape is None else array.reshape(shape)
        return gs.from_numpy(array).requires_grad_(self.requires_grad and array.dtype.kind in "fc")


# --- factors that are unique up to a sign or a phase ------------------------------------------------------------------


def _adjoint(x: Any) -> Any:
    return x.transpose(-1, -2).conj()


def _positive(x: Any) -> Any:
    """Return a Hermitian positive-definite matrix made of any one, with eigenvalues apart."""
    return x @ _adjoint(x) + (x * 0 + 1).tril().triu() * 2


def _factor(x: Any, upper: bool) -> Any:
    """Return a triangular matrix with a real diagonal."""
    diagonal = x.diagonal(dim1=-2, dim2=-1).real.to(x.dtype).diag_embed()
    return (x.triu(1) if upper else x.tril(-1)) + diagonal


def _projections(vectors: Any) -> list[Any]:
    """Return the projection on each column, which does not depend on its sign or phase."""
    columns = [vectors[..., i : i + 1] for i in range(vectors.shape[-1])]
    return [column @ _adjoint(column) for column in columns]


def _pairs(U: Any, Vh: Any) -> list[Any]:
    """Return the products of singular vectors that belong together."""
    return [U[..., i : i + 1] @ Vh[..., i : i + 1, :] for i in range(min(U.shape[-1], Vh.shape[-2]))]


def _svd(f: Any, x: Any, *rest: Any) -> list[Any]:
    U, S, Vh = f(x, *rest)
    return [S, *_pairs(U, Vh)]


def _eigh(f: Any, x: Any, *rest: Any) -> list[Any]:
    values, vectors = f(_positive(x), *rest)
    return [values, *_projections(vectors)]


def _eig(f: Any, x: Any) -> list[Any]:
    values, vectors = f(x)
    return [values, *_projections(vectors)]


# What is compared and differentiated in place of the operator itself: a function of it, and of arguments in its domain,
# that calculus has one answer for. The first output is the operator's own.
REGULAR_FORMS: dict[str, Callable[..., Any]] = {
    "cholesky": lambda f, x, *rest: [f(_positive(x), *rest)],
    "cholesky_inverse": lambda f, x, upper=False: [f(_factor(x, upper), upper)],
    "cholesky_solve": lambda f, b, x, upper=False: [f(b, _factor(x, upper), upper)],
    "linalg_cholesky_ex": lambda f, x, **options: list(f(_positive(x), **options)),
    "linalg_eig": _eig,
    "linalg_eigh": _eigh,
    "linalg_svd": _svd,
}


def own(op: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of an operator, ours or PyTorch's, in the form that is compared and differentiated."""
    form = REGULAR_FORMS.get(op.name)
    return function if form is None else lambda *args, **kwargs: form(function, *args, **kwargs)


def samples(op: Operator, kind: str = "float64") -> list[Sample]:
    """Return the sample arguments of an operator, made anew."""
    assert op.samples is not None
    return op.samples(Maker(op.name, kind))


def extremes(op: Operator, kind: str = "float64") -> list[Sample]:
    """Return the extreme arguments of an operator, made anew."""
    return [] if op.extremes is None else op.extremes(Maker(op.name, kind, requires_grad=has_derivative(op)))


def node_name(tensor: Any) -> str:
    """Return the name of a tensor's node, without PyTorch's C++ namespace."""
    return tensor.grad_fn.name().removeprefix("torch::autograd::")


# In-place forms that take other arguments than PyTorch's.
OTHER_ARGUMENTS = ("index_put",)


def convert(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """Apply `function` to every tensor in nested arguments."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(convert(item, function) for item in value)
    if isinstance(value, dict):
        return {key: convert(item, function) for key, item in value.items()}
    return value


def leaves(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested arguments, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))


def differentiable(sample: Sample) -> list[Tensor]:
    """Return the tensors of a sample that require grad."""
    return [t for t in leaves(list(sample)) if t.requires_grad]


def replaced(sample: Sample, operand: Tensor, by: Tensor) -> Sample:
    """Return a sample in which another tensor stands for one of the operands, and new leaves for the others."""
    return tuple(convert(part, lambda t: by if t is operand else renewed(t)) for part in sample)  # type: ignore[return-value]


def renewed(tensor: Tensor) -> Tensor:
    """Return a leaf with the values of a tensor."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def call(op: Operator, sample: Sample) -> list[Tensor]:
    """Return the outputs of an operator as a list."""
    args, kwargs = sample
    result = own(op, op.function)(*args, **kwargs)
    outputs = [result] if isinstance(result, Tensor) else list(result)
    assert all(output._dtype == output._array.dtype for output in outputs)
    return outputs


def call_itself(op: Operator, sample: Sample) -> list[Tensor]:
    """Return the outputs of the operator itself, whatever they are unique up to."""
    args, kwargs = sample
    result = op.function(*args, **kwargs)
    return [result] if isinstance(result, Tensor) else list(result)


def seeds_for(outputs: list[Tensor]) -> list[Tensor]:
    """Return a gradient for each output that has one, the same ones for the same shapes."""
    generator = numpy.random.default_rng(7)
    found = []
    for output in outputs:
        if not output.requires_grad:
            continue
        values = generator.uniform(-1, 1, tuple(output.shape))
        if output.is_complex():
            values = values + 1j * generator.uniform(-1, 1, tuple(output.shape))
        array = numpy.asarray(values).astype(output.dtype.numpy)
        found.append(Tensor._wrap(device.to_device(array, output.device)))
    return found


def gradients(outputs: list[Tensor], sample: Sample, *, create_graph: bool = False) -> list[Tensor | None]:
    """Return the gradients of the sample's tensors for fixed gradients of the outputs."""
    ends = [o for o in outputs if o.requires_grad]
    return list(
        backward.grad(ends, differentiable(sample), seeds_for(outputs), create_graph=create_graph, allow_unused=True)
    )


def host(tensor: Any) -> Any:
    """Return the values of a tensor of ours or of PyTorch's as a host array; None as it is."""
    if tensor is None:
        return None
    if isinstance(tensor, Tensor):
        return numpy.array(device.to_host(tensor._array))
    return numpy.array(tensor.detach().resolve_conj().resolve_neg().numpy(force=True))


def same(found: Any, expected: Any, what: str, *, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    """Assert that two arrays have one shape, one dtype and close values (None equals None)."""
    if found is None or expected is None:
        assert found is expected, f"{what}: {found} instead of {expected}"
        return
    assert found.shape == expected.shape, f"{what}: shape {found.shape} instead of {expected.shape}"
    assert found.dtype == expected.dtype, f"{what}: dtype {found.dtype} instead of {expected.dtype}"
    numpy.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=what)


def sizes(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return a shape with -1 replaced by what makes `count` elements."""
    known = int(numpy.prod([s for s in shape if s != -1]))
    return tuple(count // known if s == -1 else s for s in shape)


# --- other layouts, other modules -------------------------------------------------------------------------------------


def relaid(tensor: Tensor) -> Tensor:
    """Return a leaf with the same values in a non-contiguous layout."""
    array = tensor._array
    if array.ndim >= 2:
        copy = numpy.array(array.T, order="C").T
    elif array.ndim == 1:
        copy = numpy.repeat(array, 2)[::2]
    else:
        copy = array.copy()
    return Tensor._wrap(copy).requires_grad_(tensor.requires_grad)


def lazy(tensor: Tensor) -> Tensor:
    """Return a leaf of the same elements whose memory holds their conjugates, or their negatives if they are real."""
    if tensor._dtype.kind not in "fc":
        return tensor
    bits = (tensor.is_complex(), not tensor.is_complex())
    leaf = Tensor._wrap(resolve_bits(tensor._array, *bits))
    mark(leaf, *bits)
    return leaf.requires_grad_(tensor.requires_grad)


def moved(tensor: Tensor, to: str) -> Tensor:
    """Return a leaf with the same values on another device."""
    return tensor.detach().to(to).requires_grad_(tensor.requires_grad)


def to_torch(torch: Any, value: Any) -> Any:
    """Return arguments as PyTorch takes them."""
    if isinstance(value, Tensor):
        return torch.from_numpy(numpy.array(value._array)).requires_grad_(value.requires_grad)
    if isinstance(value, dtype.dtype):
        return getattr(torch, value.name)
    if isinstance(value, device.device):
        return str(value)
    if isinstance(value, (list, tuple)):
        return type(value)(to_torch(torch, item) for item in value)
    if isinstance(value, dict):
        return {key: to_torch(torch, item) for key, item in value.items()}
    return value


def torch_leaves(value: Any) -> list[Any]:
    """Return the PyTorch tensors in nested arguments that require grad, in order."""
    if hasattr(value, "requires_grad"):
        return [value] if value.requires_grad else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in torch_leaves(item)]
    return []


def has_derivative(op: Operator) -> bool:
    """Whether an operator has a derivative: a node it may have without one, that raises, as in PyTorch."""
    return op.differentiable and op.node_name != "NotImplemented" and op.name != "geqrf"


# Functions of these names have other arguments, and are compared in tests/runtime/ops/nn/test_normalization.py.
OF_OTHER_ARGUMENTS = {"native_batch_norm", "native_group_norm", "native_layer_norm"}


def has_counterpart(op: Operator) -> bool:
    """Whether PyTorch is expected to have the operator: all but the helpers that only other functions call."""
    if op.name in OF_OTHER_ARGUMENTS:
        return False
    return op.name in COUNTERPARTS or op.name.partition(".")[0] in PUBLIC or op.name in ALSO_IN_LINALG


def counterpart(torch: Any, op: Operator) -> Callable[..., Any]:
    """Return PyTorch's operator of the same name."""
    if op.name in COUNTERPARTS:
        function = COUNTERPARTS[op.name]
        return lambda *args, **kwargs: function(torch, *args, **kwargs)
    base = op.name.partition(".")[0]
    if hasattr(torch.linalg, base.removeprefix("linalg_")) and base.startswith("linalg_"):
        return getattr(torch.linalg, base.removeprefix("linalg_"))
    for place in (torch.ops.aten, torch.nn.functional, torch):
        if hasattr(place, base):
            return getattr(place, base)
    raise AssertionError(f"no counterpart of {op.name} in PyTorch: add one to COUNTERPARTS")


# --- functions made of operators --------------------------------------------------------------------------------------


def inputs_of(shapes: tuple[tuple[int, ...], ...]) -> list[Tensor]:
    """Return leaves of these shapes with values that rise evenly from -0.4, different in each."""
    values = [numpy.arange(numpy.prod(shape)).reshape(shape) / 7 - 0.4 for shape in shapes]
    return [gs.from_numpy(numpy.asarray(v + nr / 9)).requires_grad_() for nr, v in enumerate(values)]


def assert_agrees(torch: Any, use: Callable[..., Any], *shapes: tuple[int, ...], nodes: bool = True) -> None:
    """Assert that ``use(module, *tensors)`` gives the same values, dtypes, gradients and node names in both modules."""
    leaves = inputs_of(shapes)
    theirs = [to_torch(torch, leaf) for leaf in leaves]
    found, expected = use(gs, *leaves), use(torch, *theirs)
    found, expected = ([r] if hasattr(r, "shape") else list(r) for r in (found, expected))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        same(host(a), host(b), "result", rtol=1e-7, atol=1e-9)
        assert a.requires_grad == b.requires_grad
        if nodes and a.grad_fn is not None:
            assert node_name(a) == node_name(b)
    if not any(a.requires_grad for a in found):
        return
    sum((a * a).sum() for a in found if a.requires_grad).backward()
    sum((b * b).sum() for b in expected if b.requires_grad).backward()
    for a, b in zip(leaves, theirs, strict=True):
        same(host(a.grad), host(b.grad), "gradient", rtol=1e-7, atol=1e-9)


def assert_same_refusal(torch: Any, use: Callable[[Any], Any]) -> None:
    """Assert that ``use(module)`` raises PyTorch's exception class in ours (or one below it)."""
    raised = []
    for module in (torch, gs):
        try:
            use(module)
        except Exception as error:
            raised.append(type(error))
        else:
            raise AssertionError(f"{module.__name__} raised nothing")
    assert issubclass(raised[1], raised[0]), f"{raised[1].__name__} instead of {raised[0].__name__}"
