"""Producers of NaN and Inf among the nodes and operators that run, told from those that only pass them on."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_not
from typing import Any, NamedTuple

import numpy

from ...adapters import Adapter
from ...output.number_format import format_shape
from ...records.records import Location, operator_name, operator_of
from ...source.call_sites import user_frame
from ...source.variable_names import name_of
from ..no_gradient.dataflow import RESCALING, overflowed
from .nan_causes import DOUBLE_WHERE, Cause, backward_cause, element_of, forward_cause, is_elementwise
from .nan_records import NanOrigin, NanStep, Producer

__all__ = [
    "BackwardVisitor",
    "NanTraces",
    "ForwardVisitor",
    "all_finite",
    "producer_of",
    "first_bad",
    "saved_values",
    "tainted_by",
]

_FEW = 16
_NONES = itertools.repeat(None)
_KINDS = 1_000  # a program may make classes in a loop
_NOT_REFERRED_TO = (type(None), numpy.generic)

# A chain is for reading: of a longer one only the two ends are kept.
_CHAIN = 12

# Operators that put an infinity where the program asks for it: nothing has gone wrong there.
_PUTTING = {
    "fill", "full", "full_like", "new_full", "masked_fill", "where", "tensor", "copy", "index_put", "masked_scatter",
    "scatter", "index_fill", "constant_pad_nd", "pad", "triu", "tril", "clone", "detach", "alias", "lift_fresh",
    "set", "arange", "to", "amax", "max",
}  # fmt: skip

# These operators return memory that holds anything until it is written.
_UNINITIALISED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "resize"}

# These operators move numbers into a part of a tensor: what is bad in the rest of it was there before.
_WRITING = {
    "setitem", "copy", "index_put", "index_copy", "scatter", "masked_scatter", "slice_scatter", "select_scatter",
}  # fmt: skip

# Nodes that send a gradient of 0 to what was not selected.
_SELECTING = {"Where", "MaskedFill", "NanToNum", "Index", "MaskedSelect", "MaskedScatter", "Clamp", "IndexPut"}


class _TensorKinds(dict[type, bool]):
    """Whether objects of a class are tensors, as far as it was asked."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def __missing__(self, kind: type) -> bool:
        if len(self) >= _KINDS:
            self.clear()
        found = self[kind] = issubclass(kind, self._adapter.tensor_classes())
        return found


class NanTrace:
    """A producer and who has passed it on so far."""

    __slots__ = ("producer", "chain", "backwards")

    def __init__(self, producer: Producer, chain: tuple[NanStep, ...] = (), backwards: int = 0) -> None:
        self.producer = producer
        self.chain = chain
        self.backwards = backwards

    def then(self, step: NanStep) -> NanTrace:
        """Return the trace one step on."""
        if len(self.chain) >= _CHAIN:
            chain = (*self.chain[: _CHAIN // 2], *self.chain[_CHAIN // 2 + 1 :], step)
        else:
            chain = (*self.chain, step)
        return NanTrace(self.producer, chain, self.backwards)


class NanTraces:
    """The producers found so far, and the longest chain of each.

    Attributes
    ----------
    backwards : int
        How many backward passes have begun; 0 where nobody counts.
    """

    def __init__(self) -> None:
        self.backwards = 0
        self.traces: dict[Producer, NanTrace] = {}
        self.passed_on = 0
        self.masked: dict[NanStep, None] = {}
        self.parameters: dict[str, None] = {}
        self._constant: set[Producer] = set()
        self._ended: set[Producer] = set()
        self._unscaled: dict[Producer, None] = {}
        self._closed = False

    def close(self) -> None:
        """Take in nothing more: parameters have taken bad gradients in, and all that follows comes of it."""
        self._closed = True

    def add(self, producer: Producer, *, constant: bool = False) -> NanTrace:
        """Add a producer; a constant has no gradient."""
        if constant:
            self._constant.add(producer)
        if self._closed:
            return NanTrace(producer)
        return self.traces.setdefault(producer, NanTrace(producer, (), self.backwards))

    def latest(self) -> NanTrace | None:
        """Return the trace of the last producer."""
        return next(reversed(self.traces.values()), None)

    def masked_by(self, step: NanStep, trace: NanTrace) -> None:
        """Note that `step` got a bad value and let none out."""
        if not self._closed:
            self.masked[step] = None
            self.ended(trace)

    def ended(self, trace: NanTrace) -> None:
        """Note that nothing of a bad value has gone on."""
        self._ended.update({trace.producer} & self._constant)

    def reached(self, name: str) -> None:
        """Note that a bad gradient has reached a parameter."""
        if not self._closed:
            self.parameters[name] = None

    def passed(self, trace: NanTrace, step: NanStep) -> NanTrace:
        """Note that `step` passed a bad value on."""
        longer = trace.then(step)
        self._ended.discard(trace.producer)
        if self._closed or trace.producer not in self.traces:
            return longer
        self.passed_on += 1
        if len(longer.chain) > len(self.traces[trace.producer].chain):
            self.traces[trace.producer] = longer
        return longer

    def rescaled(self, overflow: bool) -> None:
        """Note that a GradScaler has updated its scale: after an overflow it has left the step out and lowers it."""
        if self._closed:
            return
        if overflow:
            self._unscaled.update(dict.fromkeys(each for each in self.traces if each.direction == "backward"))
            return
        for producer in self._unscaled:
            self.traces.pop(producer, None)
        if self._unscaled:
            self.parameters.clear()
        self._unscaled.clear()

    def origin(self) -> NanOrigin:
        """Return what has been found."""
        found = _merged(
            replace(producer, chain=trace.chain, backwards=trace.backwards, hidden=producer in self._ended)
            for producer, trace in self.traces.items()
        )
        any_nan = any(each.value == "NaN" for each in found)
        # Harmless values come last; an infinity that led to nothing comes after every NaN.
        found.sort(key=lambda each: (each.harmless, any_nan and each.value == "Inf" and not each.chain))
        unsafe = {each.location for each in found if each.help == DOUBLE_WHERE and "Where" in each.text}
        if found and found[0].location is not None and found[0].location in unsafe:
            # The program has chosen between two branches already, and means the other one there.
            found[0] = replace(found[0], help=DOUBLE_WHERE)
        return NanOrigin(tuple(found), self.passed_on, tuple(self.masked), tuple(self.parameters))


def _merged(producers: Iterable[Producer]) -> list[Producer]:
    """Return one producer per line and cause: the first, of those that a loop repeats."""
    found: dict[tuple[Any, ...], Producer] = {}
    for producer in producers:
        found.setdefault((producer.direction, producer.name, producer.location, producer.text), producer)
    return list(found.values())


# --- backward ---------------------------------------------------------------------------------------------------------


class BackwardVisitor:
    """Visits each node that has run, and tells producers from nodes that pass bad values on."""

    def __init__(
        self,
        adapter: Adapter,
        traces: NanTraces,
        module_of: Callable[[Any], str],
        names: Mapping[int, str],
        arrived: Callable[[Any, NanTrace], None] | None = None,
    ) -> None:
        self._adapter = adapter
        self._carried, self._are_small = adapter.carried, adapter.are_small_and_finite  # called at every node
        self._kinds = _TensorKinds(adapter)
        self._arrived = arrived
        self._traces = traces
        self._module_of = module_of
        self._names = names
        self._arriving: dict[tuple[int, int], NanTrace] = {}
        # The nodes that have run, and of each which of its gradients it has made: the collector walks along no bytes.
        self._ran: list[Any] = []
        self._made: list[bytes] = []
        # The gradients that the last node has made: where somebody held one, a leaf would not take it over.
        self._clean: Sequence[weakref.ref[Any]] = ()
        self._senders_known: dict[tuple[int, int], tuple[int, str]] = {}
        # Of compiled nodes, by key: what inside of them was found to be the producer.
        self.inside: dict[int, Producer] = {}

    def is_clean(self, call: Any) -> bool:
        """Whether a node that has run was given nothing bad, and has made nothing bad; that is noted."""
        node, (given, made) = call.node, self._carried(call)
        if self._are_small((*given, *made)):  # to remember what is clean takes longer than that
            self._clean = ()
            self._note(node, made)
            return True
        new = given
        if self._adapter.variable(node) is None:
            # Most gradients that enter a node have just left another one; what enters a leaf is looked at again, as a
            # hook may have written it, and nothing comes out there that would show it.
            seen = {id(reference()) for reference in self._clean}
            new = [grad for grad in given if grad is not None and id(grad) not in seen]
        if not self._are_finite([*new, *made]):
            self._clean = ()
            return False
        self._clean = [weakref.ref(grad) for grad in made if not isinstance(grad, _NOT_REFERRED_TO)]
        self._note(node, made)
        return True

    def _are_finite(self, carried: Sequence[Any]) -> bool:
        """Whether it is seen at a glance that no gradient has a NaN or an infinity; of one on a device, there."""
        if any(self._kinds[type(gradient)] for gradient in carried):
            looked = self._adapter.moments(carried)
            if any(moments is not None and (moments.nans or moments.infs) for moments in looked):
                return False
            carried = [gradient for gradient, moments in zip(carried, looked) if moments is None]
        return all_finite(map(self._array_of, carried))

    def _array_of(self, carried: Any) -> Any:
        """Return the array of a gradient that a node carries as a tensor."""
        return self._adapter.to_host(carried) if self._kinds[type(carried)] else carried

    def _note(self, node: Any, produced: Sequence[Any]) -> None:
        self._ran.append(node)
        self._made.append(bytes(map(is_not, produced, _NONES)))

    def visit(
        self, node: Any, grads: Sequence[Any], produced: Sequence[Any], held: Callable[[], dict[str, Any]]
    ) -> Producer | None:
        """Look at a node; return what it is as a producer, if it is one.

        Parameters
        ----------
        held : callable
            Returns what the node had saved, by name.
        """
        adapter = self._adapter
        key = adapter.key(node)
        name = adapter.node_name(node)
        trace = self._trace_of(key, grads)
        leaf = adapter.variable(node)
        if leaf is not None:
            if trace is not None:
                name = self._parameter_of(leaf)
                self._traces.reached(name)
                trace = self._traces.passed(trace, NanStep(f"AccumulateGrad of {name}", "", None))
                if self._arrived is not None:
                    self._arrived(leaf, trace)
            return None
        self._note(node, produced)
        step = NanStep(name, self._module_of(node), adapter.location(node))
        found, onward = None, None
        for index, (child, nr) in enumerate(adapter.edges(node)):
            if child is None or index >= len(produced) or produced[index] is None:
                continue
            place_ = (adapter.key(child), nr)
            values = adapter.to_host(produced[index])
            bad = first_bad(values) if trace is None else self._made_here(operator_name(name), grads, values)
            if bad is None:
                if trace is not None and first_bad(values) is not None:
                    onward = onward or self._traces.passed(trace, step)
                    self._arriving[place_] = onward
                continue
            producer = self._producer(node, step, grads, values, bad, held())
            found = found or producer
            self._arriving[place_] = self._traces.add(producer)
        return found

    def _senders(self) -> dict[tuple[int, int], tuple[int, str]]:
        """Return the key and name of who sent a gradient, by the node and input that it was sent to."""
        ran, self._ran = self._ran, []
        made, self._made = self._made, []
        for node, there in zip(ran, made):
            sender = self._adapter.key(node), self._adapter.node_name(node)
            for (child, nr), sent in zip(self._adapter.edges(node), there):
                if sent and child is not None:
                    self._senders_known[self._adapter.key(child), nr] = sender
        return self._senders_known

    def _parameter_of(self, leaf: Any) -> str:
        name = self._names.get(id(leaf)) or name_of(leaf, user_frame())
        return f"`{name}`" if name else f"a leaf of shape {format_shape(tuple(leaf.shape))}"

    def _trace_of(self, key: int, grads: Sequence[Any]) -> NanTrace | None:
        for nr, grad in enumerate(grads):
            if grad is None or first_bad(self._adapter.to_host(grad)) is None:
                continue
            known = self._arriving.get((key, nr))
            if known is not None:
                return known
            # The NaN came from outside: from the loss itself, or from a hook that replaced the gradient.
            sender = self._senders().get((key, nr), (0, "the gradient that entered backward"))[1]
            values = self._adapter.to_host(grad)
            text = "the gradient arrived with it: the loss is not finite, or a hook put it there"
            return self._traces.add(
                producer_of("backward", sender, "", None, Cause(text), values, first_bad(values), ())
            )
        return None

    def _made_here(self, operator: str, grads: Sequence[Any], values: Any) -> tuple[int, ...] | None:
        """Return a bad element that no bad element of the gradients that arrived explains."""
        return unexplained(operator, [self._adapter.to_host(g) for g in grads if g is not None], values)

    def _producer(
        self, node: Any, step: NanStep, grads: Sequence[Any], values: Any, bad: tuple[int, ...], saved: dict[str, Any]
    ) -> Producer:
        inner = self.inside.get(self._adapter.key(node))
        if inner is not None:
            return inner
        arrays = {name: self._adapter.to_host(t) for name, t in saved.items()}
        elements = {
            name: element_of(a, values.shape, bad) for name, a in arrays.items() if a.dtype.kind in "fiub" and a.size
        }
        for name, array in arrays.items():
            if elements.get(name) is None and array.size == 1 and array.dtype.kind in "fiu":
                elements[name] = float(array.reshape(-1)[0])
        arrived = next((self._adapter.to_host(g) for g in grads if g is not None), None)
        grad = None if arrived is None else element_of(arrived, values.shape, bad)
        zeroed, tainted = self._zeroed_by(node, grad), tainted_by(arrays)
        cause = backward_cause(operator_name(step.name), grad, elements, float(abs(values[bad])), zeroed, tainted)
        operands = [(name, value) for name, value in elements.items() if value is not None]
        if grad is not None:
            operands.append(("gradient", grad))
        return producer_of("backward", step.name, step.module, step.location, cause, values, bad, tuple(operands))

    def _zeroed_by(self, node: Any, grad: float | None) -> str:
        """Say which node upstream made a gradient 0: where() for the branch that was not taken, or a product with 0."""
        if grad != 0:
            return ""
        key, product, senders = self._adapter.key(node), "", self._senders()
        for _ in range(_CHAIN):
            sender = next((s for (child, _), s in senders.items() if child == key), None)
            if sender is None:
                break
            key, name = sender
            if operator_name(name) in _SELECTING:
                return f"{name} did not take this branch"
            if operator_name(name) == "Mul":
                product = product or f"{name} multiplied it by 0"
        return product


def producer_of(
    direction: str,
    name: str,
    module: str,
    location: Location | None,
    cause: Cause,
    values: Any,
    bad: tuple[int, ...] | None,
    operands: tuple[tuple[str, float], ...],
) -> Producer:
    """Return an operator or node as the producer of a bad value.

    Parameters
    ----------
    direction, name, module, location
        As in :class:`Producer`.
    values : array
        The result.
    bad : tuple of int or None
        The first bad element.
    operands : tuple of (str, float)
        What the element was computed from, by name.
    """
    index = bad if bad is not None else ()
    kind = "NaN" if bool(numpy.isnan(values[index]).any()) else "Inf"
    wrong = int(values.size - numpy.count_nonzero(numpy.isfinite(values)))
    return Producer(
        direction=direction,
        value=kind,
        name=name,
        module=module,
        location=location,
        text=cause.text,
        help=cause.help,
        element=index,
        operands=operands,
        bad=wrong,
        numel=int(values.size),
        shape=tuple(values.shape),
        inherited=None if cause.saved is None else bool(cause.saved),
    )


def first_bad(values: Any) -> tuple[int, ...] | None:
    """Return the index of the first NaN, or of the first infinity if there is no NaN; None if all is finite."""
    if values.dtype.kind not in "fc" or not values.size:
        return None
    finite = numpy.isfinite(values)
    if finite.all():
        return None
    nan = numpy.isnan(values)
    wrong = nan if nan.any() else ~finite
    return tuple(int(i) for i in numpy.unravel_index(int(numpy.argmax(wrong)), values.shape))


def all_finite(values: Iterable[Any]) -> bool:
    """Whether it is seen at a glance that arrays, or None, have no NaN and no infinity; of what is no array it is not.

    Examples
    --------
    >>> import numpy
    >>> all_finite([numpy.ones(3), None]), all_finite([numpy.array([1.0, numpy.inf])])
    (True, False)
    """
    for array in values:
        if array is None:
            continue
        # A plain number is a result without dimensions.
        if type(array) is not numpy.ndarray and not isinstance(array, numpy.generic):
            return False
        kind = array.dtype.kind
        if kind == "f":
            if array.size <= _FEW and array.ndim == 1:  # this takes a third of the time of an array of truth values
                if not all(map(math.isfinite, array.tolist())):
                    return False
            elif numpy.count_nonzero(numpy.isfinite(array)) != array.size:  # this is quicker than all()
                return False
        elif kind not in "iub":
            return False
    return True


def tainted_by(arrays: Mapping[str, Any]) -> str:
    """Return the name of the first array that has a NaN or an infinity anywhere; empty if none has."""
    return next((name for name, array in arrays.items() if first_bad(array) is not None), "")


def unexplained(operator: str, operands: Sequence[Any], values: Any) -> tuple[int, ...] | None:
    """Return a bad element of a result that comes from no bad element of its operands; None if there is none.

    Of operators that mix elements nobody can tell: one bad operand explains everything.
    """
    if first_bad(values) is None:
        return None
    wrong = [~numpy.isfinite(a) for a in operands if a.dtype.kind in "fc"]
    if not any(w.any() for w in wrong):
        return first_bad(values)
    if not is_elementwise(operator):
        return None
    bad = ~numpy.isfinite(values)
    for mask in wrong:
        try:
            bad &= ~numpy.broadcast_to(mask, values.shape)
        except ValueError:
            return None
    return first_bad(numpy.where(bad, values, 0)) if bad.any() else None


def saved_values(adapter: Adapter, node: Any) -> dict[str, Any]:
    """Return the saved tensors of a node by name; those that a hook has packed are left alone."""
    return {v.name: v.data for v in adapter.saved(node) if not v.released and v.saved_version is not None}


# --- forward ----------------------------------------------------------------------------------------------------------


class _Result(NamedTuple):
    """One bad result of an operator, and whether it has a gradient."""

    name: str
    step: NanStep
    operands: list[Any]
    values: Any
    trace: NanTrace | None
    direction: str
    recorded: bool


# The trace of a tensor that holds whatever was in its memory.
_UNWRITTEN = NanTrace(Producer("forward", "NaN", "empty", "", None, "", "", (), (), 0, 0, ()))


class ForwardVisitor:
    """Visits every operator that has run, and looks at its results."""

    def __init__(self, adapter: Adapter, traces: NanTraces) -> None:
        self._adapter = adapter
        self._traces = traces
        self._known: dict[int, tuple[weakref.ref[Any], NanTrace | None]] = {}
        self._kinds = _TensorKinds(adapter)
        # The adapter's are_small_and_finite() by the class of a result: it is asked at every operator.
        self._are_small: dict[type, Callable[[Sequence[Any]], bool]] = {}

    def accumulated(self, leaf: Any, trace: NanTrace) -> None:
        """Note that a bad gradient has arrived in a leaf: what the program computes from ``.grad`` comes of it."""
        grad = self._adapter.leaf_grad(leaf)
        if grad is not None:
            self._know(grad, trace)

    def is_small_and_clean(self, call: Any) -> bool:
        """Whether an operator was given nothing that is known to be bad, and has made few numbers, none of them bad.

        It is seen without another operator. False says nothing.
        """
        known, outputs = self._known, call.outputs
        if not outputs or RESCALING in call.name:
            return False
        if known and any(id(tensor) in known for tensor in (*call.inputs, *outputs)):
            return False
        return (self._are_small.get(type(outputs[0])) or self._look_at_small_ones(outputs[0]))(outputs)

    def is_clean(self, call: Any) -> bool:
        """Whether an operator was given nothing that is known to be bad, and has made nothing bad."""
        known = self._known
        if known and any(id(tensor) in known for tensor in (*call.inputs, *call.outputs)):
            return False
        if operator_of(call.name) == RESCALING:
            return False
        host = self._adapter.to_host
        for output in call.outputs:
            if self._kinds[type(output)] and output.is_floating_point() and not all_finite((host(output),)):
                return False
        return True

    def _look_at_small_ones(self, result: Any) -> Callable[[Sequence[Any]], bool]:
        """Return what looks at small results of a class from now on."""
        if len(self._are_small) >= _KINDS:
            self._are_small.clear()
        found = self._are_small[type(result)] = self._adapter.of(result).are_small_and_finite
        return found

    def visit(self, call: Any, module: str, direction: str = "forward") -> Producer | None:
        """Look at an operator, which may run in the backward of a custom Function; return it if it is a producer."""
        adapter = self._adapter
        if operator_of(call.name) == RESCALING:
            self._traces.rescaled(overflowed(adapter, call))
            return None
        outputs = [t for t in call.outputs if adapter.is_tensor(t) and t.is_floating_point()]
        inputs = [t for t in call.inputs if adapter.is_tensor(t)]
        passed_in = {id(t): self._trace(t) for t in inputs}
        trace = next((t for t in passed_in.values() if t is not None), None)
        producers, clean = [], True
        for output in outputs:
            values = adapter.to_host(output)
            if first_bad(values) is None:
                self._known.pop(id(output), None)
                continue
            clean = False
            if operator_of(call.name) == "grad":  # the nodes of this backward have been watched themselves
                self._know(output, self._traces.latest())
                continue
            name, step = operator_of(call.name), NanStep(operator_of(call.name), module, call.location)
            if any(self._is_unwritten(t) for t in inputs if t is not output):
                self._know(output, _UNWRITTEN)
                continue
            # An operator that wrote its input has left no copy of what that was.
            operands = [adapter.to_host(t) for t in inputs if t is not output]
            before = passed_in.get(id(output))
            if before is not None:
                self._know(output, self._traces.passed(before, step))
                continue
            if any(tensor is output for tensor in inputs) and _was_there(name, operands, values):
                continue
            if trace is None and self._in_parameters(inputs):
                return None
            producer, onward = self._traced(
                _Result(name, step, operands, values, trace, direction, call.node is not None)
            )
            self._know(output, onward)
            producers.append(producer)
        if clean and trace is not None and outputs:
            self._masked(call, module, inputs, trace)
        elif clean and trace is not None and any(self._is_integer(t) for t in call.outputs):
            self._traces.ended(trace)
        return next((producer for producer in producers if producer is not None), None)

    def looked_at_parameters(self, inputs: Sequence[Any]) -> None:
        """Take in nothing more where a custom Function is given parameters that bad gradients have made bad."""
        self._in_parameters(inputs)

    def _is_integer(self, value: Any) -> bool:
        """Whether a result is neither a number that may be bad nor an answer about one."""
        return self._adapter.is_tensor(value) and self._adapter.spec(value).dtype != "bool"

    def _in_parameters(self, inputs: Sequence[Any]) -> bool:
        """Whether bad gradients have made a parameter bad, from which everything is so from now on."""
        if not self._traces.parameters:
            return False
        leaves = [t for t in inputs if t.requires_grad and self._adapter.is_leaf(t)]
        if not any(first_bad(self._adapter.to_host(leaf)) is not None for leaf in leaves):
            return False
        self._traces.close()
        return True

    def _traced(self, result: _Result) -> tuple[Producer | None, NanTrace | None]:
        """Return the producer, if bad values were computed here, and the trace that goes on."""
        name, step, operands, values, trace, direction, recorded = result
        made = self._made_here(result)
        if made is None:
            given = next((a for a in operands if first_bad(a) is not None), None)
            if trace is None and given is not None and bool(numpy.isnan(given).any()):
                trace = self._traces.add(_given(step, given))
            return None, None if trace is None else self._traces.passed(trace, step)
        if name in _UNINITIALISED:
            return None, _UNWRITTEN
        if numpy.isinf(values[made]) and (name in _PUTTING or not operands):
            return None, None
        if trace is not None:
            # An infinity becomes NaN here.
            self._traces.passed(trace, step)
        clean = not any(first_bad(a) is not None for a in operands)
        put = clean and (name in _PUTTING or not operands)
        cause = Cause("the program puts it there") if put else forward_cause(name, operands, values, made)
        given_elements = [(f"input {i}", element_of(a, values.shape, made)) for i, a in enumerate(operands)]
        known = tuple((n, v) for n, v in given_elements if v is not None)
        producer = producer_of(direction, name, step.module, step.location, cause, values, made, known)
        return None if put else producer, self._traces.add(producer, constant=not recorded)

    @staticmethod
    def _made_here(result: _Result) -> tuple[int, ...] | None:
        """Return a bad element that was made here: unexplained by the operands, or NaN out of infinities."""
        bad = first_bad(result.values)
        assert bad is not None
        any_nan = any(a.dtype.kind in "fc" and bool(numpy.isnan(a).any()) for a in result.operands)
        if numpy.isnan(result.values[bad]) and not any_nan:
            return bad
        return unexplained(result.name, result.operands, result.values)

    def _masked(self, call: Any, module: str, inputs: Sequence[Any], trace: NanTrace) -> None:
        if any(t.is_floating_point() and first_bad(self._adapter.to_host(t)) is not None for t in inputs):
            self._traces.masked_by(NanStep(operator_of(call.name), module, call.location), trace)

    def _is_unwritten(self, tensor: Any) -> bool:
        """Whether a tensor holds what was in its memory, NaN among it."""
        reference, trace = self._known.get(id(tensor), (None, None))
        unwritten = trace is _UNWRITTEN and reference is not None and reference() is tensor
        return unwritten and first_bad(self._adapter.to_host(tensor)) is not None

    def _trace(self, tensor: Any) -> NanTrace | None:
        found = self._known.get(id(tensor))
        known = found is not None and found[0]() is tensor and found[1] is not _UNWRITTEN
        return found[1] if found is not None and known else None

    def _know(self, tensor: Any, trace: NanTrace | None) -> None:
        key, table = id(tensor), self._known

        def gone(reference: Any) -> None:
            if key in table and table[key][0] is reference:
                del table[key]

        table[key] = (weakref.ref(tensor, gone), trace)


def _was_there(name: str, operands: Sequence[Any], values: Any) -> bool:
    """Whether an operator has written numbers that are finite in a tensor's dtype into a part of it."""
    written = [array for array in operands if array.dtype.kind in "fc"]
    if name not in _WRITING or not written:
        return False
    with numpy.errstate(over="ignore"):
        return all_finite(array.astype(values.dtype) for array in written)


def _given(step: NanStep, values: Any) -> Producer:
    cause = Cause("it was in a tensor that no operator made: in the data", "Check the input, or a loaded file.")
    return producer_of("forward", "the input", "", step.location, cause, values, first_bad(values), ())
