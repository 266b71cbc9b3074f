"""Makes immutable records of live nodes and tensors. All of it runs on the program's own thread."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..adapters import Adapter
from .execution_order import NodeLinks
from .module_tracking import module_of_parameter
from .records import EdgeRecord, InnerOperator, NodeRecord, SavedRecord, TensorSummary, dtype_name, operator_name
from .tensor_statistics import combined_norm, count_bad, norm_of, summarize

__all__ = [
    "any_bad",
    "bare_record",
    "gradient_summaries",
    "inner_operators",
    "norm_of_tensor",
    "saved_records",
    "tensor_summary",
]

_MOST = 2000  # calls inside of a compiled region that are looked at: each costs what its backward costs


def tensor_summary(adapter: Adapter, tensor: Any, name: str) -> TensorSummary:
    """Return the summary of a live tensor."""
    spec = adapter.spec(tensor)
    shape = (*adapter.batched(tensor), *spec.shape)
    return summarize(adapter.to_host(tensor), name, dtype=spec.dtype, device=spec.device, shape=shape)


def gradient_summaries(adapter: Adapter, grads: Sequence[Any], name: str) -> tuple[TensorSummary | None, ...]:
    """Return the summaries of gradients, None for an undefined one.

    Parameters
    ----------
    name : str
        ``'grad_outputs'`` or ``'grad_inputs'``.
    """
    return tuple(None if g is None else tensor_summary(adapter, g, f"{name}[{i}]") for i, g in enumerate(grads))


def saved_records(adapter: Adapter, node: Any, *, summaries: bool) -> tuple[SavedRecord, ...]:
    """Return what a node has saved, read without unpacking it.

    Parameters
    ----------
    summaries : bool
        With the values in numbers. A tensor that a saved-tensor hook has packed keeps its secret: unpacking it would
        call the user's hook once more than the program does.
    """
    records = []
    for view in adapter.saved(node):
        released = view.released
        before, now = view.saved_version, view.current_version
        summary = None
        if summaries and not released and before is not None:
            summary = tensor_summary(adapter, view.data, view.name)
        shape = view.shape
        batched = () if shape is None or released else adapter.batched(view.data)
        records.append(
            SavedRecord(
                name=view.name,
                shape=None if shape is None else (*batched, *shape),
                dtype="" if released else dtype_name(view.dtype),
                nbytes=view.nbytes * math.prod(batched),
                saved_version=before,
                current_version=now,
                state="released" if released else "ok" if before == now else "modified",
                summary=summary,
            )
        )
    return tuple(records)


def norm_of_tensor(adapter: Adapter, tensor: Any) -> float:
    """Return the 2-norm of a live tensor, computed where that is."""
    (moments,) = adapter.moments([tensor])
    return norm_of(adapter.to_host(tensor)) if moments is None else moments.norm


def any_bad(adapter: Adapter, grads: Iterable[Any]) -> bool:
    """Whether any of some gradients has a NaN or an infinity; None stands for an undefined one."""
    tensors = [grad for grad in grads if adapter.is_tensor(grad)]
    for grad, moments in zip(tensors, adapter.moments(tensors)):
        if sum(count_bad(adapter.to_host(grad))) if moments is None else moments.nans + moments.infs:
            return True
    return False


def inner_operators(adapter: Adapter, run: Any) -> tuple[InnerOperator, ...]:
    """Return what is inside of a compiled region that has just run, with the gradients in numbers.

    Parameters
    ----------
    run : CompiledRun
        Of a region with very many calls the first are looked at.
    """
    with adapter.quiet():
        found = [_inner_operator(adapter, step) for step in itertools.islice(run.steps(), _MOST)]
    return (*found, *adapter.inside(run.node)[len(found) :])


def _inner_operator(adapter: Adapter, step: Any) -> InnerOperator:
    given = [norm_of(adapter.to_host(grad)) for grad in step.given if adapter.is_tensor(grad)]
    made = [adapter.to_host(grad) for grad in step.made if adapter.is_tensor(grad)]
    bad = sum(sum(count_bad(values)) for values in made)
    operator: InnerOperator = step.operator
    return replace(operator, given=combined_norm(given), made=combined_norm(map(norm_of, made)), bad=bad)


def bare_record(
    adapter: Adapter,
    node: Any,
    *,
    index: int = -1,
    module: str = "",
    parameter: str = "",
    state: str = "pending",
    saved: bool = False,
    link: NodeLinks | None = None,
) -> NodeRecord:
    """Return the record of a node without its gradients.

    Parameters
    ----------
    index : int
        Its place in the engine's order.
    module, parameter : str
        Where known. A parameter gives its module.
    saved : bool
        List the saved tensors, without summaries.
    link : NodeLinks, optional
        What a walk has found of the node already.
    """
    name = adapter.node_name(node)
    if link is None:
        edges = tuple(EdgeRecord(None if n is None else adapter.key(n), nr) for n, nr in adapter.edges(node))
    else:
        edges = tuple(EdgeRecord(key, nr) for key, nr in link.edges)
    return NodeRecord(
        index=index,
        key=adapter.key(node),
        name=name,
        operator=operator_name(name),
        sequence_nr=adapter.sequence_nr(node),
        module=module or module_of_parameter(parameter),
        parameter=parameter,
        location=adapter.location(node),
        edges=edges,
        state=state,
        saved=saved_records(adapter, node, summaries=False) if saved else (),
        outputs=adapter.outputs(node),
        inside=adapter.inside(node),
    )
