"""What torch.compile has compiled: what is inside of a region's backward; and how Dynamo is kept out of here.

AOTAutograd keeps the graph of each region's backward, with the line, the module and the function of the forward pass
that each of its operators comes from. The graph is run, operator by operator, on what the region itself was given; what
that computes goes to observers alone. The region's own results stay as they are.

Dynamo reads every function that is called while it works, and ours are not for it: :func:`leave_uncompiled`.
"""

from __future__ import annotations

import getpass
import os
import re
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction

from .....program_files import is_library_file
from ....output.number_format import count
from ....records.records import InnerOperator, Location
from ....source.call_sites import line_of, place
from ...protocol import InnerCall, InnerCalls, InnerKernel, InnerStep

__all__ = [
    "CompiledRun",
    "blindness_of",
    "calls_inside",
    "generated_code",
    "inside_of",
    "is_compiled",
    "leave_uncompiled",
    "see_compiled",
    "withheld_by",
]

_TANGENTS = "tangents"
# The outputs of a region that have a gradient of their own, by what PyTorch calls them; others are views made after it.
_COMPUTED = {"non_alias", "unsafe_view_alias", "custom_function_view"}
_NAME = "CompiledFunctionBackward"
_current_node = torch._C._current_autograd_node

_NO_LINES = ", without its lines: it came from a cache, which TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 leaves out"

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')
_CONTAINERS = {"_modules", "_parameters"}


class _Step(NamedTuple):
    """Operators of the backward graph in a row that come from one call of the forward pass."""

    operator: InnerOperator
    given: tuple[Any, ...]
    saved: tuple[Any, ...]
    made: tuple[Any, ...]
    run: tuple[Any, ...]


class _Region:
    """The backward of a compiled region as a graph; see `torch.fx`."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.steps = _steps_of(module.graph)
        self.inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        (output,) = module.graph.find_nodes(op="output")
        self.results: Sequence[Any] = output.args[0]
        self.saved = sorted(
            (node for node in self.inputs if _source(node)), key=lambda node: node.meta.get("seq_nr", 0)
        )
        targets = [node.target for node in module.graph.nodes if node.op == "call_function"]
        self.calls: InnerCalls | None = None
        self.writes = any(getattr(getattr(target, "_schema", None), "is_mutable", False) for target in targets)

    @property
    def operators(self) -> tuple[InnerOperator, ...]:
        """What is inside, in the order of the backward."""
        return tuple(step.operator for step in self.steps)


_regions: weakref.WeakKeyDictionary[Any, _Region | None] = weakref.WeakKeyDictionary()


def is_compiled(node: Any) -> bool:
    """Whether a node is the backward of a compiled region."""
    return bool(node.name().startswith(_NAME))


def _region_of(function: Any) -> _Region | None:
    """Return the backward of a compiled region, by its class; None where PyTorch has not kept the graph."""
    if function not in _regions:
        kept = getattr(function, "_lazy_backward_info", None)
        load = getattr(kept, "bw_module_fn", None)  # of a region that came from the cache on the disk
        module = getattr(kept, "bw_module", None) if load is None else load()
        _regions[function] = None if module is None else _Region(module)
    return _regions[function]


def inside_of(node: Any) -> tuple[InnerOperator, ...]:
    """Return the operators inside of a node; empty where it is not compiled, or its graph is not known."""
    function = getattr(type(node), "_forward_cls", None)
    region = _region_of(function) if function is not None and is_compiled(node) else None
    return () if region is None else region.operators


def calls_inside(node: Any) -> InnerCalls | None:
    """Return how the calls inside of a node follow each other; None where it is not compiled, or its graph not known.

    Which gradient is of which output is not known of regions that write into inputs with a history.
    """
    region = _region_of(type(node)._forward_cls) if is_compiled(node) else None
    if region is None:
        return None
    if region.calls is None:
        region.calls = _calls_of(region, getattr(type(node)._forward_cls, "metadata", None))
    return region.calls


def withheld_by(node: Any) -> tuple[int, ...]:
    """Return which of its gradients a node never produces, as the graph of what is compiled has it."""
    region = _region_of(type(node)._forward_cls) if is_compiled(node) else None
    results = () if region is None else region.results
    if len(results) != len(node.next_functions):  # not each result is the gradient of an input
        return ()
    return tuple(number for number, result in enumerate(results) if result is None)


def blindness_of(function: Any) -> str:
    """Return what cannot be looked into of a compiled region, by its class."""
    region = _region_of(function)
    if region is None:
        return "what torch.compile has compiled and kept no graph of, which is one node with its own backward inside"
    lines = list(dict.fromkeys(each.location for each in region.operators if each.location is not None))
    steps = len(region.steps)
    if lines:
        told = f"{count(steps, 'call')}, {_span(lines)}"
    elif any(each.module for each in region.operators):
        told = f"{count(steps, 'call')} in modules of PyTorch's own"
    else:  # nothing tells which operators of the backward come from one call of the forward pass
        told = f"{count(steps, 'operator')} in backward{_NO_LINES}"
    return f"the forward pass of what torch.compile has compiled ({told})"


def generated_code() -> str:
    """Return the directory in which inductor puts the Python that it makes of regions; it need not be there."""
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if given:
        return given
    try:
        user = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):  # a user without a name
        user = f"uid_{os.getuid()}" if hasattr(os, "getuid") else "unknown_user"
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))


def _span(lines: Sequence[Location]) -> str:
    """Return the lines of a region: the first and the last of the file that has most of them, and how many others."""
    files = [line.filename for line in lines]
    most = max(dict.fromkeys(files), key=files.count)
    numbers = [line.lineno for line in lines if line.filename == most]
    first = place(next(line for line in lines if line.filename == most and line.lineno == min(numbers)))
    span = first if min(numbers) == max(numbers) else f"{first} to {max(numbers)}"
    others = len(set(files)) - 1
    return f"{span} and {count(others, 'other file')}" if others else span


# --- the graph --------------------------------------------------------------------------------------------------------


def _steps_of(graph: Any) -> list[_Step]:
    """Return the calls of the forward pass, last first, each with the operators of its backward."""
    carries = _carriers(graph)
    runs: list[tuple[Any, list[Any]]] = []
    for node in graph.nodes:
        if node.op in ("placeholder", "output", "get_attr") or node not in carries:
            continue
        origin = _origin(node)
        if not runs or runs[-1][0] != origin:
            runs.append((origin, []))
        runs[-1][1].append(node)
    return [_step(nodes, carries) for _, nodes in runs]


def _carriers(graph: Any) -> set[Any]:
    """Return the nodes whose values depend on an incoming gradient."""
    carries: set[Any] = set()
    for node in graph.nodes:
        incoming = node.op == "placeholder" and node.name.startswith(_TANGENTS)
        if incoming or any(each in carries for each in node.all_input_nodes):
            carries.add(node)
    return carries


def _origin(node: Any) -> Any:
    """Return what operators that come from one call of the forward pass have in common."""
    source = _source(node)
    return (source[0], node.meta.get("stack_trace")) if source else ("", node.meta.get("seq_nr"), node.name)


def _source(node: Any) -> tuple[str, Any] | None:
    """Return the innermost call of the forward pass that a node comes from: its name in the graph, and the function."""
    found = node.meta.get("fwd_source_fn_stack") or node.meta.get("source_fn_stack")
    return found[-1] if found else None


def _step(nodes: list[Any], carries: set[Any]) -> _Step:
    own = set(nodes)
    inputs = dict.fromkeys(each for node in nodes for each in node.all_input_nodes if each not in own)
    return _Step(
        _operator(nodes),
        given=tuple(each for each in inputs if each in carries),
        saved=tuple(_placeholders(each for each in inputs if each not in carries)),
        made=tuple(node for node in nodes if any(user not in own for user in node.users)),
        run=tuple(nodes),
    )


def _placeholders(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the inputs of the graph that nodes are computed from."""
    waiting = list(nodes)
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if node.op == "placeholder":
            yield node
        new = [each for each in node.all_input_nodes if each not in seen]
        seen.update(new)
        waiting += new


def _operator(nodes: list[Any]) -> InnerOperator:
    """Return the call of the forward pass that nodes come from."""
    first, kernels = nodes[0], tuple(dict.fromkeys(map(_kernel, nodes)))
    source = _source(first)
    name = _function_name(source[1]) if source else kernels[0]
    return InnerOperator(name, kernels, _module_path(first), _location(first))


def _kernel(node: Any) -> str:
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    return str(packet or getattr(target, "__name__", target)).rpartition(".")[2]


def _function_name(function: Any) -> str:
    """Return what a user calls a function, a module's class or a method of the forward pass."""
    return function if isinstance(function, str) else str(getattr(function, "__name__", function))


def _location(node: Any) -> Location | None:
    """Return the user's line that a node comes from, the innermost; None where all are a framework's."""
    frames = _FRAME.finditer(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not is_library_file(frame["file"])]
    return line_of(own[-1]["file"], int(own[-1]["line"]), own[-1]["function"].strip()) if own else None


def _module_path(node: Any) -> str:
    """Return the path of the innermost module that a node comes from, as ``named_modules()`` has it."""
    stack = node.meta.get("fwd_nn_module_stack") or node.meta.get("nn_module_stack")
    if not stack:
        return ""
    told = str(list(stack.values())[-1][0])  # L['self'].layers.0, L['model']._modules['0']
    words = [word for word in re.findall(r"\w+", told) if word not in _CONTAINERS]
    return ".".join(words[2:])


def _calls_of(region: _Region, metadata: Any) -> InnerCalls:
    """Return how the calls of the forward pass follow each other, as their gradients do the other way."""
    begins = {node: number for number, step in enumerate(region.steps) for node in step.run}
    edges = {result: number for number, result in enumerate(region.results) if result is not None}

    def behind(node: Any) -> tuple[int | None, int | None]:
        """Return the one call that a gradient goes to, or the edge by which it leaves."""
        steps = {begins[user] for user in node.users if user in begins} - {begins.get(node)}
        if len(steps) + (node in edges) != 1:
            return None, None
        if not steps:
            return None, edges[node]
        (step,) = steps
        run = region.steps[step].run
        return behind(run[0]) if _adds_gradients(run[0]) else (step, None)

    calls = []
    for step in region.steps:
        # Where gradients of two operands are made, either may be the one that is meant.
        source, edge = behind(step.made[0]) if len(step.made) == 1 else (None, None)
        calls.append(InnerCall(step.operator, _shape(step.given), source, edge))
    outputs = _gradients_of_outputs(region, metadata)
    ways = {number: behind(gradient)[0] for number, gradient in outputs.items()}
    return InnerCalls(tuple(calls), {number: call for number, call in ways.items() if call is not None})


def _adds_gradients(node: Any) -> bool:
    """Whether a node is where two gradients of one tensor meet: no call of the forward pass."""
    return _source(node) is None and _kernel(node) == "add"


def _shape(given: tuple[Any, ...]) -> tuple[int, ...]:
    value = given[0].meta.get("val") if given else None
    shape = getattr(value, "shape", ())
    # Of a size that may change the graph knows what it was when it was made.
    return tuple(size if isinstance(size, int) else size.node.hint for size in shape)


def _gradients_of_outputs(region: _Region, metadata: Any) -> dict[int, Any]:
    """Return the gradient that comes into a region for each of its outputs, where that can be told."""
    gradients = [node for node in region.inputs if node.name.startswith(_TANGENTS)]
    outputs = getattr(metadata, "output_info", ())
    own = [nr for nr, out in enumerate(outputs) if out.requires_grad and out.output_type.name in _COMPUTED]
    before = getattr(metadata, "num_mutated_inp_runtime_indices", 0), getattr(metadata, "num_intermediate_bases", 0)
    return dict(zip(own, gradients)) if len(own) == len(gradients) and not any(before) else {}


# --- a run beside the program -----------------------------------------------------------------------------------------


class CompiledRun:
    """The backward of a compiled region that has just run; see :class:`~gradscope.inspect.adapters.protocol.Observer`.

    Attributes
    ----------
    node : node
        The region in the graph.
    made : sequence
        What the region has produced.
    """

    def __init__(self, task: Any, node: Any, region: _Region, values: Sequence[Any], autocast: bool) -> None:
        self.task = task
        self.node = node
        self.made: Sequence[Any] = ()
        self._region = region
        self._autocast = autocast
        donated = getattr(getattr(type(node)._forward_cls, "metadata", None), "bw_donated_idxs", None) or ()
        # The region may compute in the memory of saved tensors that nobody needs afterwards.
        self._values = [value.clone() if place in donated else value for place, value in enumerate(values)]

    def steps(self) -> Iterator[InnerStep]:
        """Run the region's backward operator by operator; yield each call of the forward pass, the last first."""
        region = self._region
        values = self._values
        if region.writes:
            values = [value.clone() if isinstance(value, torch.Tensor) else value for value in values]
        known = dict(zip(region.inputs, values))
        last = _last_uses(region.steps)
        context = nullcontext() if self._autocast else torch._C._DisableAutocast()
        interpreter = torch.fx.Interpreter(region.module, garbage_collect_values=False)
        interpreter.env = known
        for number, step in enumerate(region.steps):
            with torch.no_grad(), context:
                for node in step.run:
                    _compute(interpreter, node)
            yield InnerStep(
                step.operator,
                tuple(known[node] for node in step.given),
                tuple(known[node] for node in step.saved),
                tuple(known[node] for node in step.made),
                tuple(_kernel_run(node, known) for node in step.run),
            )
            for node in last.get(number, ()):
                known.pop(node, None)

    def inputs(self) -> list[Any]:
        """Return what the region was given in forward, as far as it has saved that."""
        own = set(self._region.saved)
        pairs = zip(self._region.inputs, self._values)
        return [value for node, value in pairs if node not in own and not node.name.startswith(_TANGENTS)]

    def saved(self) -> list[tuple[InnerOperator, Any]]:
        """Return what it has computed in forward and saved, each with the call that has made it, the first first."""
        values = dict(zip(self._region.inputs, self._values))
        return [(_operator([node]), values[node]) for node in self._region.saved]

    def close(self) -> None:
        """Let go of what the region was given."""
        self._values = []


def _kernel_run(node: Any, known: dict[Any, Any]) -> InnerKernel:
    values = map(known.get, node.all_input_nodes)
    return InnerKernel(_kernel(node), tuple(v for v in values if isinstance(v, torch.Tensor)), known[node])


def _compute(interpreter: Any, node: Any) -> None:
    """Compute a node, and before it those that depend on no gradient and have not been needed yet."""
    waiting = [node]
    while waiting:
        missing = [each for each in waiting[-1].all_input_nodes if each not in interpreter.env]
        if missing:
            waiting += missing
            continue
        ready = waiting.pop()
        if ready not in interpreter.env:
            interpreter.env[ready] = interpreter.run_node(ready)


def _last_uses(steps: Sequence[_Step]) -> dict[int, list[Any]]:
    """Return after which step nobody needs a value of the backward any more."""
    last: dict[Any, int] = {}
    for number, step in enumerate(steps):
        for node in (*step.given, *step.run):
            last[node] = number
    found: dict[int, list[Any]] = {}
    for node, number in last.items():
        found.setdefault(number, []).append(node)
    return found


class _Watch:
    """The wrapper round the call of a compiled backward, in place while somebody wants to see inside of one."""

    _NAME = "call_func_at_runtime_with_args"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Any], tuple[Any, Callable[[CompiledRun], None]] | None]] = []
        self._original: Any = None

    def add(self, listener: Callable[[Any], Any]) -> Callable[[], None]:
        from torch._functorch._aot_autograd import runtime_wrappers  # what is compiled has imported it

        with self._lock:
            self._listeners.append(listener)
            if len(self._listeners) == 1:
                self._original = getattr(runtime_wrappers, self._NAME)
                setattr(runtime_wrappers, self._NAME, self._called)

        def remove() -> None:
            with self._lock:
                self._listeners.remove(listener)
                if not self._listeners:
                    setattr(runtime_wrappers, self._NAME, self._original)

        return remove

    def _called(self, function: Any, args: Any, steal_args: bool = False, disable_amp: bool = False) -> Any:
        node = _current_node()
        if node is None or not is_compiled(node):
            return self._original(function, args, steal_args, disable_amp)
        region = _region_of(type(node)._forward_cls)
        found = [heard for listener in list(self._listeners) if (heard := listener(node)) is not None]
        if region is None or not found or len(args) != len(region.inputs):
            return self._original(function, args, steal_args, disable_amp)
        run = CompiledRun(found[0][0], node, region, args, not disable_amp)
        run.made = self._original(function, args, steal_args, disable_amp)
        try:
            for _, tell in found:
                tell(run)
        finally:
            made, run.made = run.made, ()
            run.close()
        return made


_watch = _Watch()


def see_compiled(nodes: Sequence[Any], listener: Callable[[Any], Any]) -> Callable[[], None] | None:
    """Have `listener` asked for each compiled node that runs; return what ends that, None where none is among `nodes`.

    Parameters
    ----------
    listener : callable
        Is given the node; returns the task and a function to which the :class:`CompiledRun` is told, or None.
    """
    custom = {kind for kind in set(map(type, nodes)) if issubclass(kind, BackwardCFunction)}  # few kinds, many nodes
    found = custom and any(is_compiled(node) for node in nodes if type(node) in custom)
    return _watch.add(listener) if found else None


# --- Dynamo -----------------------------------------------------------------------------------------------------------


_dynamo = torch._C._dynamo.eval_frame
# The function is new in PyTorch 2.7; before, Dynamo gives up on each of the functions by itself.
_STRATEGY = getattr(_dynamo, "_FrameExecStrategy", None)


def leave_uncompiled(*functions: Callable[..., Any], calls: bool = True) -> None:
    """Have functions run as they are when a function that is being compiled, or has a graph break, calls them.

    Parameters
    ----------
    calls : bool
        And what they call; False for what calls the program's own code.
    """
    if _STRATEGY is None:
        return
    skip, default = _dynamo._FrameAction.SKIP, _dynamo._FrameAction.DEFAULT
    for function in functions:
        _dynamo.set_code_exec_strategy(function.__code__, _STRATEGY(skip, skip if calls else default))


leave_uncompiled(CompiledRun.__init__, CompiledRun.close, blindness_of)
leave_uncompiled(_Watch._called, calls=False)
