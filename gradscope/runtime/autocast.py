"""Autocast: which operators run in which precision inside ``with autocast(...)``.

It is one of the things behind ``state.special``: an operator looks at its tables only while autocast is on in some
thread. What is a single operator comes through :func:`arguments`; a function composed of operators that PyTorch's
tables name asks :func:`covers` first and calls itself through :func:`call`.

The tables are PyTorch's (``aten/src/ATen/autocast_mode.{h,cpp}``). "lower" is the dtype of the block, "float32" is
float32, "dtype" is float32 by the operator's own ``dtype=``, "widest" is the widest dtype among the operands. Tensors
that are not of floating point, or are float64, stay as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import state
from .memory import device as devices
from .memory import dtype as dtypes

if TYPE_CHECKING:
    from .ops.declaration.registry import Operator

__all__ = ["arguments", "call", "covers", "settings"]

# --- the tables -------------------------------------------------------------------------------------------------------

_LOWER = """addbmm addmm baddbmm bmm conv_transpose convolution linalg_vecdot linear matmul mm prelu
scaled_dot_product_attention"""

_LOSSES = """cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss
multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d poisson_nll_loss smooth_l1_loss soft_margin_loss
triplet_margin_loss binary_cross_entropy_with_logits"""

_CPU = {
    "lower": _LOWER,
    "float32": f"""{_LOSSES} _adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky
        cholesky_inverse cholesky_solve cross_entropy_loss ctc_loss fft fractional_max_pool2d fractional_max_pool3d
        geqrf grid_sampler_2d grid_sampler_3d inverse linalg_cholesky_ex linalg_eig linalg_eigh
        linalg_general_eigenvalues linalg_hermitian_eigenvalues linalg_householder_product linalg_inv_ex linalg_lstsq
        linalg_matrix_rank linalg_qr linalg_singular_values linalg_solve linalg_svd max_pool3d_with_indices max_unpool2d
        max_unpool3d ormqr pinverse polar prod quantile reflection_pad1d reflection_pad2d
        replication_pad1d replication_pad2d replication_pad3d stft trace triangular_solve
        view_as_complex""",
    # bilinear() is here so that its parts are left alone inside: PyTorch's is a sum, no product of matrices.
    "widest": "bilinear cat index_copy stack",
}

_CUDA = {
    "lower": f"""{_LOWER} addmv addr einsum gru gru_cell linalg_multi_dot lstm lstm_cell mv rnn_relu
        rnn_relu_cell rnn_tanh rnn_tanh_cell""",
    "float32": f"""{_LOSSES} _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d
        _upsample_nearest_exact2d _upsample_nearest_exact3d acos asin cdist cosh cosine_similarity dist erfinv exp expm1
        log log10 log1p log2 logsumexp native_group_norm native_layer_norm pdist pow reciprocal renorm rms_norm rsqrt
        sinh softplus tan upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
        upsample_nearest3d upsample_trilinear3d""",
    "dtype": "cumprod cumsum linalg_vector_norm log_softmax norm prod softmax sum",
    "widest": """addcdiv addcmul atan2 bilinear dot grid_sampler_2d grid_sampler_3d index_put linalg_cross scatter_add
        tensordot vdot""",
    "refused": "binary_cross_entropy",
}


class _Table(dict[str, str | None]):
    """How an operator's operands are cast, by its name; overloads (``sum.dim``) are filled in when asked."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__({name: policy for policy, text in names.items() for name in text.split()})

    def __missing__(self, name: str) -> str | None:
        policy = self[name] = self.get(name.partition(".")[0])
        return policy


_TABLES = {"cpu": _Table(_CPU), "cuda": _Table(_CUDA)}


def _table(kind: str) -> _Table:
    """Return the table of a device type; array modules that were registered are like CUDA."""
    return _TABLES.get(kind) or _TABLES["cuda"]


# --- the settings of a thread -----------------------------------------------------------------------------------------


class Settings(threading.local):
    """Whether autocast is on, its dtypes, and its cache, for one thread."""

    def __init__(self) -> None:
        self.dtypes: dict[str, Any] = {"cpu": dtypes.bfloat16}
        self.cache_enabled = True
        self.nesting = 0
        # Weights that were cast to the lower precision; the tensor is kept beside, so that its id() stays its own.
        self.cache: dict[int, tuple[Any, Any]] = {}

    def is_enabled(self, kind: str) -> bool:
        """Whether autocast is on for a device type."""
        return kind in (state.local.autocast or ())

    def dtype_of(self, kind: str) -> Any:
        """Return the lower precision of a device type: on the CPU bfloat16, elsewhere float16, unless set."""
        return self.dtypes.get(kind, dtypes.float16)

    def set_dtype(self, kind: str, dtype: Any) -> None:
        """Set the lower precision of a device type."""
        self.dtypes[kind] = dtype
        if self.is_enabled(kind):
            self._switch({**(state.local.autocast or {}), kind: dtype})

    def set_enabled(self, kind: str, enabled: bool) -> None:
        """Switch autocast on or off for a device type."""
        kinds = dict(state.local.autocast or {})
        kinds.pop(kind, None)
        if enabled:
            kinds[kind] = self.dtype_of(kind)
        self._switch(kinds)

    def _switch(self, kinds: dict[str, Any]) -> None:
        before, state.local.autocast = state.local.autocast, kinds or None
        state.add_casting(bool(kinds) - (before is not None))

    def kept(self) -> tuple[dict[str, Any], dict[str, Any], bool]:
        """Return what stands now, for :meth:`again`."""
        return dict(state.local.autocast or {}), dict(self.dtypes), self.cache_enabled

    @contextmanager
    def again(self, kept: tuple[dict[str, Any], dict[str, Any], bool]) -> Iterator[None]:
        """Let what was kept stand inside."""
        before = self.kept()
        self.nesting += 1
        try:
            self._stand(kept)
            yield
        finally:
            self._stand(before)
            self.leave()

    def _stand(self, kept: tuple[dict[str, Any], dict[str, Any], bool]) -> None:
        self._switch(dict(kept[0]))
        self.dtypes, self.cache_enabled = dict(kept[1]), kept[2]

    def leave(self) -> int:
        """Leave a block, and forget the casts of weights with the outermost one; return how many are left."""
        self.nesting -= 1
        if self.nesting == 0:
            self.cache.clear()
        return self.nesting


settings = Settings()

# --- casting ----------------------------------------------------------------------------------------------------------

# The function of the operator that converts dtypes, which is declared later: ops/shape/copy_and_cast.py fills it in.
scope: dict[str, Callable[..., Any]] = {}


def arguments(op: Operator, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of an operator's call, cast as autocast wants them on this thread."""
    for kind, lower in (state.local.autocast or {}).items():
        policy = _table(kind)[op.name]
        if policy is None:
            continue
        if policy == "dtype":
            given = _with_dtype(op, given, kind)
        else:
            given = _cast(op.name, policy, given, kind, lower)
    return given


def covers(name: str, operands: Sequence[Any]) -> bool:
    """Whether autocast is on and names a composed function, for a device that one of its operands is on."""
    return any(
        _table(kind)[name] is not None and any(_is_eligible(x, kind) for x in _tensors(operands))
        for kind in state.local.autocast or ()
    )


def call(name: str, function: Callable[..., Any], *given: Any) -> Any:
    """Call a composed function with its arguments cast; what it is composed of is left alone, as in PyTorch."""
    modes = state.local
    kinds = modes.autocast or {}
    for kind, lower in kinds.items():
        policy = _table(kind)[name]
        if policy is not None:
            given = _cast(name, "float32" if policy == "dtype" else policy, given, kind, lower)
    modes.autocast = None
    try:
        return function(*given)
    finally:
        modes.autocast = kinds


def _tensors(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if hasattr(value, "_array"):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _is_eligible(value: Any, kind: str) -> bool:
    """Whether a value is a tensor that autocast for a device type may cast."""
    array = getattr(value, "_array", None)
    if array is None or array.dtype.kind not in dtypes.FLOATING or array.dtype.itemsize == 8:
        return False
    return devices.backend_of(array).type_name == kind


def _cast(name: str, policy: str, given: tuple[Any, ...], kind: str, lower: Any) -> tuple[Any, ...]:
    if policy == "refused":
        if not any(_is_eligible(x, kind) for x in _tensors(given)):
            return given
        raise _refusal()
    target = lower if policy == "lower" else dtypes.float32
    if policy == "widest" and not any(
        x._dtype is dtypes.float32.numpy for x in _tensors(given) if _is_eligible(x, kind)
    ):
        target = lower
    return tuple(_cast_value(value, target, kind, lower) for value in given)


def _cast_value(value: Any, target: Any, kind: str, lower: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if not any(hasattr(item, "_array") for item in value):
            return value
        return [_cast_value(item, target, kind, lower) for item in value]
    if not _is_eligible(value, kind) or value._dtype is target.numpy:
        return value
    if target is not lower or not _is_kept(value):
        return scope["convert"](value, target)
    cache = settings.cache
    known = cache.get(id(value))
    if known is None or known[1]._dtype is not target.numpy:
        known = cache[id(value)] = value, scope["convert"](value, target)
    return known[1]


def _is_kept(tensor: Any) -> bool:
    """Whether the cast of a tensor is used again in the block: a leaf of float32 that requires grad."""
    return (
        settings.cache_enabled
        and settings.nesting > 0
        and state.local.grad_enabled
        and tensor._dtype is dtypes.float32.numpy
        and tensor.requires_grad
        and tensor.is_leaf
        and tensor._view is None
    )


def _with_dtype(op: Operator, given: tuple[Any, ...], kind: str) -> tuple[Any, ...]:
    """Ask an operator for float32 where its first tensor is of a lower precision and no dtype is asked for."""
    first = next(_tensors(given), None)
    if not _is_eligible(first, kind):
        return given
    place = next((i for i, p in enumerate(op.parameters) if p.name == "dtype"), None)
    if place is None:
        return tuple(_cast_value(value, dtypes.float32, kind, None) for value in given)
    if place < len(given) and given[place] is not None:
        return given
    return (*given[:place], dtypes.float32, *given[place + 1 :])


def _refusal() -> RuntimeError:
    return RuntimeError(
        "gradscope.nn.functional.binary_cross_entropy and gradscope.nn.BCELoss are unsafe to autocast.\n"
        "Many models use a sigmoid layer right before the binary cross entropy layer: take "
        "binary_cross_entropy_with_logits or BCEWithLogitsLoss instead of both, which are safe to autocast."
    )
