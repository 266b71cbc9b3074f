"""What is taken of gradients while a backward runs: of each gradient once, however many nodes see it.

Small gradients are taken as their bytes, which are fewer than their statistics would be. Of large ones the statistics
are taken at once, while the processor still holds the elements: a copy for later would cost more than that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..adapters import Adapter
from .digest import FIRST, FLOATS, SMALL, measure
from .pages import RAW, Form, NodeItem, Snapshot

__all__ = ["Flow", "Known", "Taker"]

_LARGE = 4096
"""Elements from which it costs less to see that a gradient is the one that was sent than to measure it again."""


class Known:
    """What is the same of a node in every backward.

    Attributes
    ----------
    row : int
        In the table `nodes`.
    place : int
        When it was first met in a backward.
    edges : tuple of (int or None, int)
        Where each produced gradient goes: the place of its receiver, and its input.
    wanted : bool
        Whether its gradients' values are kept.
    name, site, module, parameter : str, object, str, str
        What tells it from another node in its place; `leads` is `edges` as a list.
    """

    __slots__ = ("edges", "given", "leads", "made", "module", "name", "parameter", "place", "row", "site", "wanted")

    def __init__(
        self,
        row: int,
        place: int,
        edges: tuple[tuple[int | None, int], ...],
        wanted: bool,
        traits: tuple[str, Any, str, str],
    ) -> None:
        self.row = row
        self.place = place
        self.edges, self.leads = edges, list(edges)
        self.wanted = wanted
        self.name, self.site, self.module, self.parameter = traits
        self.given: list[Form] = []  # of each gradient what it looked like when it was last seen
        self.made: list[Form] = []


_NO_FORM = Form((), None, 0, 0)


class _Sent:
    """A large gradient that a node has been given, or has sent to another."""

    __slots__ = ("address", "checksum", "host", "snapshot")

    def __init__(self, host: Any, address: int, checksum: int, snapshot: Snapshot) -> None:
        self.host = host  # kept, so that its memory becomes nobody else's
        self.address = address
        self.checksum = checksum
        self.snapshot = snapshot


Flow = dict[tuple[int, int], _Sent | None]
"""Large gradients of one backward on their way, by place and input of the receiver; None where several add up."""


class Taker:
    """Takes them.

    Parameters
    ----------
    adapter : Adapter
    intern_spec : callable
        Returns the row of the table `specs` for a key and the facts in it.
    next_value : callable
        Returns the number of the next row of `tensor_values`.
    """

    def __init__(
        self, adapter: Adapter, intern_spec: Callable[[Any, tuple[Any, ...]], int], next_value: Callable[[], int]
    ) -> None:
        self._adapter = adapter
        self._hosts = adapter.hosts
        self._intern_spec = intern_spec
        self._next_value = next_value
        self.nbytes = 0  # of all copies so far

    def take(self, taken: NodeItem, flow: Flow, known: Known, call: Any) -> tuple[int, int]:
        """Add what there is to say of the gradients of a node; return how many it was given and has made."""
        given, made = self._hosts(call)
        large: list[_Sent] = []
        forms, nr = known.given, -1
        for host in given:
            nr += 1
            if host is None:
                taken += (None, None)
                continue
            form = forms[nr] if nr < len(forms) else _NO_FORM
            if host.dtype is not form[1] or host.shape != form[0]:
                form = self._new_form(forms, nr, host, known, call.grad_outputs[nr])
            if form[3]:
                taken += (form, host.tobytes())
            else:
                taken += (None, self._arrived(flow, known, nr, host, form.spec, large))
        forms, nr = known.made, -1
        for host in made:
            nr += 1
            if host is None:
                taken += (None, None)
                continue
            form = forms[nr] if nr < len(forms) else _NO_FORM
            if host.dtype is not form[1] or host.shape != form[0]:
                form = self._new_form(forms, nr, host, known, call.grad_inputs[nr])
            if form[3]:
                taken += (form, host.tobytes())
            else:
                taken += (None, self._sent(flow, known, nr, host, form.spec, large))
        return len(given), len(made)

    def _new_form(self, forms: list[Form], nr: int, host: Any, known: Known, grad: Any) -> Form:
        """Note what a gradient looks like."""
        facts = self._adapter.spec(grad)
        told = json.dumps(facts.shape), facts.dtype, facts.device, host.itemsize
        raw = 0 < host.size <= RAW and not known.wanted and host.dtype in FLOATS
        forms += [_NO_FORM] * (nr + 1 - len(forms))
        forms[nr] = Form(host.shape, host.dtype, self._intern_spec(told, told), host.itemsize if raw else 0)
        return forms[nr]

    # --- large ---

    def _arrived(self, flow: Flow, known: Known, nr: int, host: Any, spec: int, large: list[_Sent]) -> Snapshot:
        wanted = known.wanted
        if host.size < _LARGE:
            return self._snapshot(host, spec, wanted)
        sent = flow.pop((known.place, nr), None) if flow else None
        if sent is None or (wanted and sent.snapshot.value < 0) or not _is(host, sent):
            sent = _sending(host, self._snapshot(host, spec, wanted))
        large.append(sent)
        return sent.snapshot

    def _sent(self, flow: Flow, known: Known, nr: int, host: Any, spec: int, large: list[_Sent]) -> Snapshot:
        edges, wanted = known.edges, known.wanted
        if host.size < _LARGE:
            return self._snapshot(host, spec, wanted)
        sent = self._passed_on(host, spec, wanted, large) if large else None
        if sent is None:
            sent = _sending(host, self._snapshot(host, spec, wanted))
        target, input_nr = edges[nr] if nr < len(edges) else (None, 0)
        if target is not None:
            receiver = target, input_nr
            flow[receiver] = None if receiver in flow else sent
        return sent.snapshot

    def _passed_on(self, host: Any, spec: int, wanted: bool, large: Sequence[_Sent]) -> _Sent | None:
        """Return a gradient that is one the node was given, whole, perhaps as another view; None if it is new."""
        laid = _laid_out(host)
        if laid is None:
            return None
        address = _address(laid)
        for sent in large:
            given = sent.host
            if address != sent.address or host.size != given.size or host.dtype != given.dtype:
                continue
            if _checksum(laid) != sent.checksum:
                return None
            if host.shape == given.shape and host.strides == given.strides:
                return sent if sent.snapshot.value >= 0 or not wanted else None
            measured = sent.snapshot.measured
            if wanted or measured is None:
                return None
            seen = measured.beginning_with(host.flat[:FIRST].tolist())
            return _Sent(host, address, sent.checksum, Snapshot(spec, measured=seen))
        return None

    # --- any ---

    def _snapshot(self, host: Any, spec: int, wanted: bool) -> Snapshot:
        with numpy.errstate(all="ignore"):
            measured = measure(host) if host.size > SMALL and host.dtype in FLOATS else None
        if measured is not None and not wanted:
            return Snapshot(spec, measured=measured)
        self.nbytes += host.nbytes
        return Snapshot(spec, numpy.array(host), self._next_value() if wanted else -1, measured)


def _is(host: Any, sent: _Sent) -> bool:
    """Whether a gradient is what was sent: the same memory, and no hook has written in it."""
    other = sent.host
    if host.shape != other.shape or host.dtype != other.dtype or host.strides != other.strides:
        return False
    laid = _laid_out(host)
    return laid is not None and _address(laid) == sent.address and _checksum(laid) == sent.checksum


def _sending(host: Any, snapshot: Snapshot) -> _Sent:
    laid = _laid_out(host)
    # One whose memory has gaps is known again by nobody.
    return _Sent(host, 0, 0, snapshot) if laid is None else _Sent(host, _address(laid), _checksum(laid), snapshot)


def _laid_out(host: Any) -> Any:
    """Return a view of an array in the order of its memory; None where that has gaps, or elements that overlap."""
    if host.flags.c_contiguous:
        return host
    strides = host.strides
    laid = host.transpose(sorted(range(host.ndim), key=lambda axis: (-strides[axis], host.shape[axis] > 1)))
    return laid if laid.flags.c_contiguous else None


def _address(laid: Any) -> int:
    address: int = laid.__array_interface__["data"][0]
    return address


def _checksum(laid: Any) -> int:
    """Return a sum of the bits of a contiguous array: any one element that changes, changes it."""
    words = laid.reshape(-1).view(numpy.uint8)
    whole = words.size - words.size % 8
    return int(numpy.add.reduce(words[:whole].view(numpy.uint64)))
