"""The calls of the forward pass in a graph, those inside of what torch.compile has compiled among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...adapters import Adapter
from ...adapters.protocol import InnerCall
from ...records.execution_order import NodeLinks
from ...records.records import Location, operator_name
from ..flow.reshaping_operators import RESHAPING

__all__ = ["GraphCall", "GraphCalls"]


class GraphCall(NamedTuple):
    """A call of the forward pass: a node, or a call inside of one that is compiled.

    Attributes
    ----------
    name : str
        What its node is called, or would be: ``'LogSoftmax'``.
    inner : int or None
        Its number in the node; None where it is the node.
    """

    name: str
    link: NodeLinks
    inner: int | None = None


class GraphCalls:
    """The calls of the forward pass in a graph.

    Parameters
    ----------
    links : mapping of int to NodeLinks
        The nodes of the graph, by key.
    """

    def __init__(self, adapter: Adapter, links: Mapping[int, NodeLinks]) -> None:
        self._adapter = adapter
        self._links = links

    def __iter__(self) -> Iterator[GraphCall]:
        for link in self._links.values():
            inside = self._adapter.inner_calls(link.node)
            if inside is None:
                yield GraphCall(operator_name(self._adapter.node_name(link.node)), link)
            else:
                yield from (self._inner(link, number) for number in range(len(inside.calls)))

    def source_of(self, call: GraphCall) -> GraphCall | None:
        """Return the call that has computed the first operand of another, past those that reshape it."""
        source = self._before(call)
        while source is not None and source.name in RESHAPING:
            source = self._before(source)
        return source

    def location(self, call: GraphCall) -> Location | None:
        """Return the user's line."""
        if call.inner is None:
            return self._adapter.location(call.link.node)
        return self._inside(call).operator.location

    def module(self, call: GraphCall) -> str:
        """Return the path of the module that makes a call inside of a node; empty where it is not known."""
        return self._inside(call).operator.module

    def shape(self, call: GraphCall) -> tuple[int, ...]:
        """Return the shape of the result of a call inside of a node."""
        return self._inside(call).shape

    def _inside(self, call: GraphCall) -> InnerCall:
        inside = self._adapter.inner_calls(call.link.node)
        assert inside is not None
        assert call.inner is not None
        return inside.calls[call.inner]

    def _inner(self, link: NodeLinks, number: int) -> GraphCall:
        inside = self._adapter.inner_calls(link.node)
        assert inside is not None
        return GraphCall(_name_of_node(inside.calls[number].operator.operator), link, number)

    def _before(self, call: GraphCall) -> GraphCall | None:
        if call.inner is None:
            return self._at(*call.link.edges[0]) if call.link.edges else None
        found = self._inside(call)
        if found.source is not None:
            return self._inner(call.link, found.source)
        return None if found.edge is None else self._at(*call.link.edges[found.edge])

    def _at(self, key: int | None, output: int) -> GraphCall | None:
        """Return the call that has computed an output of a node."""
        if key is None:
            return None
        link = self._links[key]
        inside = self._adapter.inner_calls(link.node)
        if inside is None:
            return GraphCall(operator_name(self._adapter.node_name(link.node)), link)
        number = inside.results.get(output)
        return None if number is None else self._inner(link, number)


def _name_of_node(function: str) -> str:
    """Return what the node of a function, a module's class or a kernel of the backward would be called.

    Examples
    --------
    >>> [_name_of_node(name) for name in ("log_softmax", "CrossEntropyLoss", "_softmax_backward_data", "relu_")]
    ['LogSoftmax', 'CrossEntropy', 'Softmax', 'Relu']
    """
    words = function.partition("_backward")[0].removesuffix("Loss").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)
