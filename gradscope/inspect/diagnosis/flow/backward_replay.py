"""A backward run again, node by node, beside the program: no hook runs, nothing is accumulated, nothing is freed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...adapters import NOT_TOLD, Adapter, expected_spec
from ...records.execution_order import NodeLinks, engine_order, walk
from ...records.records import TensorSpec

__all__ = ["BackwardReplay", "freed_nodes"]

Visit = Callable[[Any, list[Any], Sequence[Any]], None]


def freed_nodes(adapter: Adapter, links: dict[int, NodeLinks]) -> list[Any]:
    """Return the nodes of a graph that have let go of a saved tensor.

    Parameters
    ----------
    links : dict of int to NodeLinks
        From :func:`walk`.
    """
    return [link.node for link in links.values() if any(view.released for view in adapter.saved(link.node))]


class BackwardReplay:
    """The backward of a loss, to be run without a trace.

    Attributes
    ----------
    links : dict of int to NodeLinks
        The nodes, by key.
    order : list of int
        The keys in the engine's order.

    Raises
    ------
    RuntimeError
        If `loss` has no graph.
    """

    def __init__(self, adapter: Adapter, loss: Any) -> None:
        root = adapter.root(loss)
        if root is None:
            raise RuntimeError(
                "the loss does not require grad, so it has no graph\n"
                "It was computed under no_grad, or from nothing that requires grad."
            )
        self.adapter = adapter
        self.root = root
        self.links = walk(adapter, [root[0]])
        targets = {key: [child for child, _ in link.edges if child is not None] for key, link in self.links.items()}
        sequence = {key: link.sequence_nr for key, link in self.links.items()}
        self.order = engine_order([adapter.key(root[0])], sequence, targets)
        self._loss = loss

    @property
    def freed(self) -> bool:
        """Whether a backward has freed what this one would need."""
        return bool(freed_nodes(self.adapter, self.links))

    def run(self, visit: Visit, grad: Any = None, *, leave_out: Callable[[Any], bool] = lambda node: False) -> None:
        """Run the nodes; call ``visit(node, grad_outputs, grad_inputs)`` after each.

        Parameters
        ----------
        visit : callable
            An AccumulateGrad is visited too, with no ``grad_inputs``.
        grad : Tensor, optional
            The gradient of the loss; ones by default.
        leave_out : callable, optional
            Whether a node is not to be run: it is visited, with no ``grad_inputs``, and hands nothing on.

        Raises
        ------
        RuntimeError
            If a backward has freed what the nodes saved, or PyTorch (2.4) does not tell what gradients they expect.
        """
        adapter = self.adapter
        if self.freed:
            raise RuntimeError(
                "the graph has been freed by a backward pass, so nothing can be computed from it\n"
                "Ask before backward(), or call backward(retain_graph=True)."
            )
        if grad is None:
            grad = adapter.tensor_like(1.0, adapter.spec(self._loss))
        waiting: dict[int, list[Any]] = {}
        self._receive(waiting, adapter.key(self.root[0]), self.root[1], grad)
        with adapter.quiet():
            for key in self.order:
                grads = waiting.pop(key, None)
                if grads is not None:
                    self._run(key, grads, waiting, visit, leave_out)

    def _run(
        self,
        key: int,
        grads: list[Any],
        waiting: dict[int, list[Any]],
        visit: Visit,
        leave_out: Callable[[Any], bool],
    ) -> None:
        link = self.links[key]
        if self.adapter.variable(link.node) is not None or leave_out(link.node):
            visit(link.node, grads, ())
            return
        results = list(self.adapter.run_node(link.node, grads))
        for index, (child, nr) in enumerate(link.edges):
            if child is None or index >= len(results) or results[index] is None:
                continue
            spec = expected_spec(self.adapter, self.links[child].node, nr)
            if spec is None:
                raise RuntimeError(NOT_TOLD)
            results[index] = _fitted(results[index], spec)
            self._receive(waiting, child, nr, results[index])
        visit(link.node, grads, results)

    def _receive(self, waiting: dict[int, list[Any]], key: int, nr: int, grad: Any) -> None:
        slots = waiting.get(key)
        if slots is None:
            slots = waiting[key] = [None] * max(nr + 1, len(self.adapter.outputs(self.links[key].node)))
        slots[nr] = grad if slots[nr] is None else slots[nr] + grad


def _fitted(grad: Any, spec: TensorSpec) -> Any:
    """Return a gradient summed over the dimensions that its receiver had broadcast."""
    shape = tuple(grad.shape)
    if shape == spec.shape:
        return grad
    extra = len(shape) - len(spec.shape)
    padded = (1,) * extra + spec.shape
    over = [axis for axis, (have, want) in enumerate(zip(shape, padded)) if have != want]
    return grad.sum(over, keepdim=True).reshape(spec.shape) if over else grad.reshape(spec.shape)
