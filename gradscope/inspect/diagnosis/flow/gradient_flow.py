"""How gradients flow through a model: how large, beside what they change, where they are dead, vanish or explode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from ...adapters import Adapter
from ...output.number_format import count, format_shape, several
from ...records.execution_order import walk
from ...records.module_tracking import module_of_parameter
from ...records.naming import name_graph
from ...records.records import NodeRecord
from ...records.snapshots import norm_of_tensor
from ...records.tensor_statistics import count_bad, is_finite, norm_of
from ..explanation import Explanation, adapter_of, describe, parameters_of
from ..finding_limits import Limits
from ..plots import bars
from .backward_replay import BackwardReplay
from .dead_units import DeadUnits, dead_units

__all__ = ["GradientFlow", "ParameterFlow", "flow_of_nodes", "gradient_flow", "verdict_of"]

# The size of an update beside its weight below which training stands still, and above which it jumps.
_STILL, _WILD = 1e-7, 10.0

_NOT_YET = "no gradient has arrived yet: call backward() first, or pass the loss: gi.gradient_flow(model, loss)"
_NOT_REACHED = "the loss reaches none of them; why_no_grad() tells why"


@dataclass(frozen=True)
class ParameterFlow:
    """The gradient of one parameter.

    Attributes
    ----------
    weight_norm : float
        2-norm of its values.
    grad_norm : float or None
        2-norm of its gradient; None without one.
    grad_rms : float or None
        ``grad_norm / sqrt(number of elements)``, which compares between shapes.
    ratio : float or None
        ``grad_norm / weight_norm``; None without a gradient or with a weight of zeros.
    zeros : float
        Which part of the gradient's elements is zero.
    dead_rows : int
        Rows (along the first dimension, the outputs of a layer) whose gradient is zero.
    bad : int
        Elements that are NaN or Inf.
    """

    name: str
    module: str
    shape: tuple[int, ...]
    weight_norm: float
    grad_norm: float | None
    grad_rms: float | None
    ratio: float | None
    zeros: float
    dead_rows: int
    bad: int


@dataclass(frozen=True, repr=False)
class GradientFlow(Explanation):
    """How gradients flow through a model.

    Attributes
    ----------
    parameters : tuple of ParameterFlow
        In the order of the model.
    rectifiers : tuple of DeadUnits
        Those with dead units; known when a loss was given.
    verdict : str
        ``'ok'``, ``'vanishing'``, ``'exploding'``, ``'zero'`` (everywhere, for some parameters), ``'not finite'``, or
        ``'none'``: no parameter has a gradient.
    findings : tuple of str
        What is wrong, a sentence each.
    first : str
        Where gradients vanish or explode: the name of the parameter at the model's beginning that shows it.

    See Also
    --------
    gradient_flow

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.Linear(2, 1)
    >>> flow = gi.gradient_flow(model, model(gs.ones(4, 2)).sum())
    >>> [parameter.name for parameter in flow.parameters]
    ['weight', 'bias']
    """

    parameters: tuple[ParameterFlow, ...]
    rectifiers: tuple[DeadUnits, ...]
    verdict: str
    findings: tuple[str, ...]
    first: str = ""

    @property
    def modules(self) -> dict[str, float]:
        """The norm of the gradients of each module's own parameters, by path."""
        squares: dict[str, float] = {}
        for p in self.parameters:
            if p.grad_norm is not None:
                squares[p.module] = squares.get(p.module, 0.0) + p.grad_norm**2
        return {module: math.sqrt(value) for module, value in squares.items()}

    def __str__(self) -> str:
        known = [p for p in self.parameters if p.grad_norm is not None]
        head = f"{len(known)} of {count(len(self.parameters), 'parameter')} have a gradient"
        if known:
            norms = [p.grad_norm for p in known if p.grad_norm is not None]
            head += f", of norms {min(norms):.3g} to {max(norms):.3g}"
        missing = [p.name for p in self.parameters if p.grad_norm is None] if known else []
        more = [f"no gradient: {several(missing)} (why_no_grad() tells why)"] if missing else []
        return "\n".join([f"{head}: {self.verdict}", *(f"  {finding}" for finding in (*more, *self.findings))])

    def plot(self, ax: Any = None) -> Any:
        """Draw the gradients' root mean square by parameter, those with findings in red.

        Raises
        ------
        ImportError
            If Matplotlib (the extra ``plots``) is not installed.
        """
        known = [p for p in self.parameters if p.grad_rms is not None]
        colors = ["tab:red" if p.bad or p.dead_rows or not p.grad_rms else "tab:blue" for p in known]
        sizes = [p.grad_rms or 0.0 for p in known]
        names = [p.name or format_shape(p.shape) for p in known]
        return bars(names, sizes, title=f"Gradient flow: {self.verdict}", xlabel="RMS", colors=colors, log=True, ax=ax)

    def _title(self) -> str:
        return f"Gradient flow: {self.verdict}"

    def _columns(self) -> Sequence[str]:
        return ("parameter", "shape", "#|weight|", "#|grad|", "#ratio", "#zero", "#dead", "#NaN/Inf")

    def _rows(self) -> Iterable[Sequence[str]]:
        for p in self.parameters:
            weight = "" if math.isnan(p.weight_norm) and not p.bad else f"{p.weight_norm:.3g}"
            if p.grad_norm is None:
                yield (p.name or "-", format_shape(p.shape), weight, "none", "", "", "", "")
                continue
            ratio = "" if p.ratio is None else f"{p.ratio:.2e}"
            rows = (f"{p.zeros:.0%}", str(p.dead_rows), str(p.bad))
            yield (p.name or "-", format_shape(p.shape), weight, f"{p.grad_norm:.3g}", ratio, *rows)


def gradient_flow(params: Any = None, loss: Any = None, *, adapter: Adapter | None = None) -> GradientFlow:
    """Say how gradients flow through a model.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor), optional
        In the order from input to output, as a model lists them. With a loss, by default those of the living modules
        that own the leaves of its graph.
    loss : Tensor, optional
        Take the gradients of this loss, without accumulating them, and look for rectifiers with dead units; by default
        the gradients are those in ``.grad``.

    Raises
    ------
    TypeError
        Without parameters and loss.
    RuntimeError
        If `loss` has no graph, or a backward has freed it.

    See Also
    --------
    why_no_grad : The reason for each gradient that is missing or zero.
    nan_origin : Where a NaN or Inf comes from.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w, v = gs.ones(3, requires_grad=True), gs.full((3,), 1e-6, requires_grad=True)
    >>> (w * v).sum().backward()
    >>> print(gi.gradient_flow({"w": w, "v": v}))
    2 of 2 parameters have a gradient, of norms 1.73e-06 to 1.73: vanishing
      gradients vanish from `v` to `w`: their RMS falls from 1 to 1e-06
    """
    if params is not None:
        adapter, pairs = parameters_of(params, loss, adapter)
    elif loss is not None:
        adapter = adapter_of(loss, adapter)
        pairs = _parameters_below(adapter, loss)
    else:
        raise TypeError("gradient_flow() needs parameters or a loss\nPass the model: gi.gradient_flow(model).")
    grads, rectifiers = _gradients(adapter, pairs, loss)
    flows = tuple(_flow(adapter, name, tensor, grads.get(id(tensor))) for name, tensor in pairs)
    verdict, ends, first = verdict_of(flows)
    if verdict == "none":
        ends = (_NOT_YET if loss is None else _NOT_REACHED,)
    return GradientFlow(flows, tuple(rectifiers), verdict, (*ends, *_findings(flows, rectifiers)), first)


def flow_of_nodes(nodes: Iterable[NodeRecord], unreached: Iterable[tuple[str, tuple[int, ...]]] = ()) -> GradientFlow:
    """Say how gradients have flowed in one backward, by what has been recorded of its leaves.

    Parameters
    ----------
    nodes : iterable of NodeRecord
        In execution order. What a record does not have is left open: the weights, and rows without a gradient.
    unreached : iterable of (str, tuple of int)
        Names and shapes of parameters that none of the nodes brings a gradient: they stand first.
    """
    leaves = [node for node in nodes if node.parameter]
    flows = (
        *(_flow_by_norm(name, shape, None) for name, shape in unreached),
        *(_recorded_flow(node) for node in reversed(leaves)),
    )
    verdict, ends, first = verdict_of(flows)
    if verdict == "none":
        ends = ("nothing is recorded of what came to them",)
    return GradientFlow(flows, (), verdict, (*ends, *_findings(flows, ())), first)


def _recorded_flow(node: NodeRecord) -> ParameterFlow:
    grad = next((grad for grad in node.grad_outputs or () if grad is not None), None)
    shape = tuple(node.outputs[0].shape) if node.outputs else ()
    if grad is None:
        return _flow_by_norm(node.parameter, shape, node.norm)
    zeros, bad = grad.zeros / max(grad.numel, 1), grad.nans + grad.infs
    return replace(_flow_by_norm(node.parameter, shape, grad.norm), zeros=zeros, bad=bad)


def _flow_by_norm(name: str, shape: tuple[int, ...], norm: float | None) -> ParameterFlow:
    rms = None if norm is None else norm / math.sqrt(max(math.prod(shape), 1))
    return ParameterFlow(name, module_of_parameter(name), shape, math.nan, norm, rms, None, 0.0, 0, 0)


def _parameters_below(adapter: Adapter, loss: Any) -> list[tuple[str, Any]]:
    """Return the parameters of the modules that a loss was computed with, and leaves that are in no module."""
    root = adapter.root(loss)
    if root is None:
        return []
    return list(name_graph(adapter, walk(adapter, [root[0]])).tensors)


def _gradients(adapter: Adapter, pairs: Sequence[tuple[str, Any]], loss: Any) -> tuple[dict[int, Any], list[DeadUnits]]:
    if loss is None:
        return {id(tensor): adapter.leaf_grad(tensor) for _, tensor in pairs}, []
    grads: dict[int, Any] = {}

    def visit(node: Any, arrived: list[Any], produced: Sequence[Any]) -> None:
        leaf = adapter.variable(node)
        if leaf is not None:
            grads[id(leaf)] = arrived[0]

    replay = BackwardReplay(adapter, loss)
    replay.run(visit)
    users = name_graph(adapter, replay.links, pairs).modules
    return grads, dead_units(adapter, [replay.root[0]], users)


def _flow(adapter: Adapter, name: str, tensor: Any, grad: Any) -> ParameterFlow:
    shape = tuple(tensor.shape)
    weight = norm_of_tensor(adapter, tensor)
    module = module_of_parameter(name)
    if grad is None:
        return ParameterFlow(name, module, shape, weight, None, None, None, 0.0, 0, 0)
    (moments,) = adapter.moments([grad])
    if moments is not None and not moments.zeros:  # then no row of it is zero, and its elements need not be read
        norm, size, bad = moments.norm, moments.size, moments.nans + moments.infs
        rms, ratio = norm / math.sqrt(size), norm / weight if weight else None
        return ParameterFlow(name, module, shape, weight, norm, rms, ratio, 0.0, 0, bad)
    values = adapter.to_host(grad)
    norm, size = norm_of(values), max(values.size, 1)
    rows = values.reshape(values.shape[0], -1) if values.ndim > 1 and values.size else None
    return ParameterFlow(
        name=name,
        module=module,
        shape=shape,
        weight_norm=weight,
        grad_norm=norm,
        grad_rms=norm / math.sqrt(size),
        ratio=norm / weight if weight else None,
        zeros=1.0 - int(numpy.count_nonzero(values)) / size,
        dead_rows=0 if rows is None else int(numpy.count_nonzero(~rows.any(axis=1))),
        bad=sum(count_bad(values)),
    )


def verdict_of(flows: Sequence[ParameterFlow], ratio: float = Limits.flow_ratio) -> tuple[str, tuple[str, ...], str]:
    """Compare the gradients at the two ends of a model.

    Parameters
    ----------
    flows : sequence of ParameterFlow
        Of one backward, in the order of the model.
    ratio : float
        By how many times the gradients per element at the ends differ, to have vanished or exploded.

    Returns
    -------
    (str, tuple of str, str)
        The verdict, a sentence where gradients vanish or explode, and the name of the parameter that shows it.
    """
    if flows and all(flow.grad_norm is None for flow in flows):
        return "none", (), ""
    if any(flow.bad or not is_finite(flow.grad_norm) for flow in flows):
        return "not finite", (), ""
    known = _comparable(flows)
    if any(flow.grad_norm == 0 for flow in flows):
        return "zero", (), ""
    if len(known) < 2:
        return "ok", (), ""
    # A single parameter whose gradient vanishes stands behind a weight of about zero, as in a fresh adapter layer, or
    # is the query of an attention that is still even; so several at each end are compared, all of the first layer.
    ends_of = max(len(known) // 4, min(2, len(known) // 2))
    first, last = known[0], known[-1]
    beginning = known[:ends_of] + [flow for flow in known[ends_of:] if in_layer_of(first, flow)]
    ending = known[-ends_of:]
    if _rms(last) > max(map(_rms, beginning)) * ratio:
        word, verb, way = "vanishing", "vanish", "falls"
    elif _rms(first) > max(map(_rms, ending)) * ratio:
        word, verb, way = "exploding", "explode", "grows"
    else:
        return "ok", (), ""
    ends = f"from {describe(last.name, last.shape)} to {describe(first.name, first.shape)}"
    text = f"gradients {verb} {ends}: their RMS {way} from {_rms(last):.3g} to {_rms(first):.3g}"
    return word, (text,), first.name


def first_of(flows: Sequence[ParameterFlow]) -> ParameterFlow | None:
    """Return the first of the parameters that are compared; None where there is none."""
    return next(iter(_comparable(flows)), None)


def in_layer_of(first: ParameterFlow, flow: ParameterFlow) -> bool:
    """Whether a parameter is in the same numbered layer as another one.

    Examples
    --------
    >>> names = ["layer.0.query.weight", "layer.0.value.weight", "layer.1.query.weight", "head.weight"]
    >>> flows = [ParameterFlow(name, "", (2, 2), 1.0, 1.0, 0.5, 1.0, 0.0, 0, 0) for name in names]
    >>> [in_layer_of(flows[0], flow) for flow in flows]
    [True, True, False, False]
    """
    layer = _layer_of(first.name)
    return bool(layer) and _layer_of(flow.name) == layer


def _layer_of(name: str) -> str:
    """Return the path of the innermost numbered module: ``layer.0`` of ``layer.0.query.weight``."""
    parts = name.split(".")[:-1]
    number = next((index for index in reversed(range(len(parts))) if parts[index].isdigit()), -1)
    return ".".join(parts[: number + 1])


def _comparable(flows: Sequence[ParameterFlow]) -> list[ParameterFlow]:
    """Return the matrices, where there are any: biases and normalisation weights live on other scales."""
    return [f for f in flows if f.grad_rms and len(f.shape) > 1] or [f for f in flows if f.grad_rms]


def _rms(flow: ParameterFlow) -> float:
    return flow.grad_rms or 0.0


def _findings(flows: Sequence[ParameterFlow], rectifiers: Sequence[DeadUnits]) -> list[str]:
    found = []
    for flow in flows:
        name = describe(flow.name, flow.shape, "a leaf")
        if flow.bad:
            found.append(f"{name}: {count(flow.bad, 'element')} of its gradient NaN or Inf; nan_origin() tells why")
        elif not is_finite(flow.grad_norm):  # its elements were not kept
            found.append(f"{name}: its gradient is not finite; nan_origin() tells why")
        elif flow.grad_norm == 0:
            found.append(f"{name}: its gradient is zero everywhere; why_no_grad() tells why")
        elif flow.dead_rows:
            found.append(f"{name}: {flow.dead_rows} of {flow.shape[0]} rows get no gradient")
        elif flow.ratio is not None and len(flow.shape) > 1 and not _STILL < flow.ratio < _WILD:
            found.append(f"{name}: its gradient is {flow.ratio:.1e} times the size of its weight")
    return found + [str(unit) for unit in rectifiers]
