"""The saved tensors of a PyTorch node, read without unpacking them for the program and without a version check."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from ...source.frame_variables import variables_of
from .numpy_conversion import shape_of
from .saved_tensors_unpacked import SHOWN, UnpackedSlot, versions_in
from .transforms.dispatch_modes import modes_aside

__all__ = [
    "PLAIN_SLOTS",
    "RELEASED",
    "TorchSaved",
    "held",
    "held_of",
    "late_hooks",
    "raw_names",
    "saved_bytes",
    "saved_of",
    "set_version",
    "tell_checkpoint_violation",
    "tell_violation",
    "unpacked_of",
    "versions_in",
    "written_by_itself",
]

RELEASED = "gradscope.inspect.released"
"""In a node's metadata: it counts as released (see :meth:`.observed_backward.TorchTask.keep`)."""

_RAW = "_raw_saved_"
_OF_CUSTOM = "_raw_saved_tensors"
_CHECKPOINT = os.path.join("torch", "utils", "checkpoint.py")
_ASKING = ("get_inputs", "unpack_hook")  # its functions that ask for the inputs; before PyTorch 2.10 the second alone
_raw_names: dict[type, tuple[str, ...]] = {}


class TorchSaved:
    """One saved tensor.

    PyTorch keeps the version at which it was saved to itself, but tells it when it refuses to unpack the tensor: so the
    question is asked by unpacking, and only of what no saved-tensor hook has packed.
    """

    def __init__(self, node: Any, name: str, raw: Any, attribute: str) -> None:
        self.name = name
        self._node = node
        self._raw = raw
        self._attribute = attribute

    @property
    def released(self) -> bool:
        """Whether the node has let go of it."""
        return _released(self._node, self._raw)

    @property
    def packed(self) -> bool:
        """Whether a saved-tensor hook has packed it."""
        return getattr(self._raw, "unpack_hook", None) is not None

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor that was saved requires grad."""
        return bool(getattr(self.data, "requires_grad", False))

    @property
    def data(self) -> Any:
        """The value, stale or not; what a hook has packed comes as the hook made it."""
        if self.released:
            raise RuntimeError(f"the saved tensor `{self.name}` has been released")
        return self._raw.data

    @property
    def _tensor(self) -> torch.Tensor | None:
        data = None if self.released else self._raw.data
        return data if isinstance(data, torch.Tensor) else None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """None once released, and where a hook has packed it into something else."""
        tensor = self._tensor
        return None if tensor is None else shape_of(tensor)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        tensor = self._tensor
        return None if tensor is None else tensor.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        tensor = self._tensor
        return 0 if tensor is None else tensor.numel() * tensor.element_size()

    @property
    def unpacked(self) -> torch.Tensor | None:
        """The tensor itself; None once released, and where a hook has packed it."""
        return None if self.packed else self._tensor

    @property
    def current_version(self) -> int | None:
        """The version its memory is at now; None where none is kept."""
        tensor = self.unpacked
        with torch._C.DisableTorchFunction():
            return None if tensor is None or tensor.is_inference() else tensor._version

    @property
    def saved_version(self) -> int | None:
        """The version at which it was saved."""
        now = self.current_version
        if now is None:
            return None
        with modes_aside(self._tensor):  # to unpack it is an operator
            refused = _refusal(self._node, self._attribute)
        if refused is None or refused[0] != now:
            return now
        return refused[1]


def set_version(tensor: torch.Tensor, version: int) -> None:
    """Say at which version the memory of a tensor is."""
    count = torch._C._autograd._unsafe_set_version_counter
    try:
        count((tensor,), (version,))
    except TypeError:  # before PyTorch 2.6 the function took one argument
        count(tensor, version)


def saved_of(node: Any) -> list[TorchSaved]:
    """Return what a node has saved, by name."""
    return [saved for attribute in raw_names(type(node)) for saved in _of_attribute(node, attribute)]


def unpacked_of(node: Any) -> list[tuple[str, torch.Tensor | None]]:
    """Return the names of what a node has saved, and the tensors: see :attr:`TorchSaved.unpacked`.

    The same as of :func:`saved_of`, at a third of the time: what is asked of every node, twice.
    """
    found: list[tuple[str, torch.Tensor | None]] = []
    plain = SHOWN and RELEASED not in node.metadata
    for attribute in raw_names(type(node)):
        held = _held(node, attribute) if plain else [None]
        if any(tensor is None for tensor in held):
            found += [(saved.name, saved.unpacked) for saved in _of_attribute(node, attribute)]
        else:
            found += [(_name_of(attribute), tensor) for tensor in held]
    return found


def held_of(node: Any) -> list[tuple[str, torch.Tensor]]:
    """Return the names of the tensors that a node still holds as they were saved, and the tensors.

    The same as of :func:`unpacked_of`, without asking of the other slots whether they have ever held one.
    """
    if not SHOWN:
        return [(name, tensor) for name, tensor in unpacked_of(node) if tensor is not None]
    return [
        (_name_of(attribute), tensor)
        for attribute in raw_names(type(node))
        for tensor in _held(node, attribute)
        if tensor is not None
    ]


def held(node: Any) -> Callable[[], dict[str, Any]]:
    """Return a function that lists what a node has saved now, by name, also after the node has released it."""
    kind: type = type(node)
    slots = PLAIN_SLOTS[kind]
    if slots is None or RELEASED in node.metadata:
        return _listed(node)
    kept = []
    for raw, _ in slots:
        slot = getattr(node, raw)
        if type(slot) is tuple:
            return _listed(node)
        kept.append(slot.data if slot.unpack_hook is None else None)
    return functools.partial(_by_name, slots, kept)


def _listed(node: Any) -> Callable[[], dict[str, Any]]:
    saved = {v.name: v.data for v in saved_of(node) if not v.released and v.saved_version is not None}
    return lambda: saved


def _by_name(slots: Sequence[tuple[str, str]], kept: Sequence[torch.Tensor | None]) -> dict[str, Any]:
    there = ((raw, tensor) for (raw, _), tensor in zip(slots, kept) if tensor is not None)
    return {_name_of(raw): tensor for raw, tensor in there if not tensor.is_inference()}


def saved_bytes(nodes: Iterable[Any]) -> int | None:
    """Return the size of the memory that nodes have saved, each piece once; None where one has no plain memory."""
    if not SHOWN:
        return None
    sizes: dict[int, int] = {}
    try:
        with torch._C.DisableTorchFunction():
            for node in nodes:
                for attribute in raw_names(type(node)):
                    raw = getattr(node, attribute)
                    for slot in raw if type(raw) is tuple else (raw,):
                        tensor = slot.data
                        if tensor is not None and slot.unpack_hook is None:
                            storage = tensor.untyped_storage()
                            sizes[storage._cdata] = storage.nbytes()
                if RELEASED in node.metadata:
                    return None
    except (NotImplementedError, RuntimeError):  # one is sparse or inside of a transform, or what was saved is released
        return None
    return sum(sizes.values())


def _held(node: Any, attribute: str) -> list[torch.Tensor | None]:
    """Return what each slot of an attribute holds; None where that is nothing, or something that a hook has packed."""
    try:
        raw = getattr(node, attribute)
    except RuntimeError:  # a custom Function has released everything
        return []
    slots = raw if isinstance(raw, tuple) else (raw,)
    return [slot.data if slot.unpack_hook is None else None for slot in slots]


def written_by_itself(node: Any) -> tuple[str, ...]:
    """Return the names of what a node has saved and writes itself, so that it does not read it.

    In training batch_norm writes the statistics that it has saved, and cuDNN writes the state of its generator.
    """
    training = hasattr(type(node), "_saved_training") and node._saved_training
    return _WRITTEN if training else _WRITTEN[-1:]


_WRITTEN = ("running_mean", "running_var", "dropout_state")


def _of_attribute(node: Any, attribute: str) -> Iterator[TorchSaved]:
    try:
        raw = getattr(node, attribute)
    except RuntimeError:  # a custom Function has released everything
        return
    name = _name_of(attribute)
    plain = name if attribute == _OF_CUSTOM else f"_saved_{name}"
    several = isinstance(raw, tuple)
    for place, item in enumerate(raw if several else (raw,)):
        slot = item if SHOWN else UnpackedSlot(node, item, plain, place if several else None)
        if slot.data is not None or _was_something(node, slot, plain):
            yield TorchSaved(node, name, slot, plain)


class _LateHooks:
    """Whether the program has given hooks of its own to what a node had saved already (`SavedTensor.register_hooks`).

    As a rule no program does; where one has, it is asked of each saved tensor whether a hook has packed it.
    """

    are_there = False

    def note(self) -> Callable[[], None]:
        """Note it from now on; return what ends that."""
        kind = torch._C._autograd.SavedTensor
        original = vars(kind)["register_hooks"]  # as the class holds it: what it gives would bind to no tensor

        @functools.wraps(original)
        def register_hooks(*args: Any, **kwargs: Any) -> Any:
            self.are_there = True
            return original(*args, **kwargs)

        def restore() -> None:
            # A function by which other code has replaced it meanwhile stays.
            if vars(kind)["register_hooks"] is register_hooks:
                kind.register_hooks = original

        kind.register_hooks = register_hooks
        return restore


late_hooks = _LateHooks()


class _PlainSlots(dict[type, tuple[tuple[str, str], ...] | None]):
    """Where nodes of a class hold saved tensors: the attributes, and those that give what is unpacked.

    None where each node is to be asked: of custom Functions, and where not all that is saved is read.
    """

    def __missing__(self, kind: type) -> tuple[tuple[str, str], ...] | None:
        names = raw_names(kind)
        # A class of a custom Function's is not kept: a program may make them in a loop.
        if names == (_OF_CUSTOM,):
            return None
        plain = SHOWN and not {*map(_name_of, names)}.intersection(_WRITTEN)
        found = self[kind] = tuple([(name, f"_saved_{_name_of(name)}") for name in names]) if plain else None
        return found


PLAIN_SLOTS = _PlainSlots()


def _name_of(attribute: str) -> str:
    return "saved_tensors" if attribute == _OF_CUSTOM else attribute.removeprefix(_RAW)


def _was_something(node: Any, raw: Any, attribute: str) -> bool:
    """Whether an empty slot is one that has been released, and not one that never held a tensor."""
    if getattr(raw, "unpack_hook", None) is not None:
        return True
    try:
        getattr(node, attribute)
    except RuntimeError as error:
        return versions_in(error) is None  # else another tensor of the node is refused
    return False


def _released(node: Any, raw: Any) -> bool:
    return raw.data is None or RELEASED in node.metadata


def _refusal(node: Any, attribute: str) -> tuple[int, int] | None:
    """Return (version now, version then) if PyTorch refuses to unpack, else None."""
    try:
        with torch._C.DisableTorchFunction():
            getattr(node, attribute)
    except RuntimeError as error:
        return versions_in(error)
    return None


def raw_names(kind: type) -> tuple[str, ...]:
    """Return the attributes of a class of nodes that hold saved tensors."""
    if issubclass(kind, BackwardCFunction):  # PyTorch makes such a class for every custom Function
        return (_OF_CUSTOM,)
    names = _raw_names.get(kind)
    if names is None:
        names = _raw_names[kind] = tuple(name for name in dir(kind) if name.startswith(_RAW))
    return names


class CheckpointInput:
    """A tensor that a checkpoint was given, and keeps beside the graph to compute its region again.

    It looks as a :class:`TorchSaved` does.
    """

    name = "input of checkpoint()"
    released = False
    requires_grad = False  # the node that computed it is no neighbour of the node that asks

    def __init__(self, tensor: torch.Tensor, versions: tuple[int, int]) -> None:
        self.data = tensor
        self.shape = shape_of(tensor)
        self.dtype = tensor.dtype
        self.nbytes = tensor.numel() * tensor.element_size()
        self.current_version, self.saved_version = versions


def tell_checkpoint_violation(error: BaseException, versions: tuple[int, int], node: Any) -> bool:
    """Put on PyTorch's error which input of a checkpoint it is that has been written; return whether it is one.

    Parameters
    ----------
    versions : tuple of (int, int)
        See :func:`versions_in`.
    node : object
        Which asked for what it had saved inside of the checkpoint.
    """
    tensor = _refused_input(error, versions[0])
    if tensor is None:
        return False
    handed = CheckpointInput(tensor, versions)
    error.__dict__.update(
        node=node,
        operator=node.name(),
        saved_name=handed.name,
        shape=handed.shape,
        dtype=handed.dtype,
        saved_version=versions[1],
        current_version=versions[0],
        checkpoint_input=handed,
    )
    return True


def _refused_input(error: BaseException, version: int) -> torch.Tensor | None:
    """Return the first input of a checkpoint that is at a version, where the error comes from unpacking its inputs."""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name in _ASKING and code.co_filename.endswith(_CHECKPOINT):
            with torch._C.DisableTorchFunction():
                for tensor in _checkpoint_inputs(variables_of(trace.tb_frame)):
                    if isinstance(tensor, torch.Tensor) and tensor._version == version:
                        return tensor
        trace = trace.tb_next
    return None


def _checkpoint_inputs(variables: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the tensors that a checkpoint keeps; before PyTorch 2.10 it does so in a node beside the graph."""
    ctx = variables.get("ctx")
    if isinstance(ctx, BackwardCFunction):
        yield from (saved.data for saved in saved_of(ctx))
    kept = getattr(variables.get("self"), "saved_args", ())
    yield from (getattr(raw, "data", None) for raw in kept if not isinstance(raw, torch.Tensor))


def tell_violation(error: BaseException, versions: tuple[int, int], nodes: Iterable[Any]) -> Any:
    """Put on PyTorch's error what it says only in words: node, name and versions of the saved tensor.

    Parameters
    ----------
    versions : tuple of (int, int)
        See :func:`versions_in`.
    nodes : iterable of node
        Among which to look; the first with such a saved tensor is the one.

    Returns
    -------
    node or None
        None if it is none of them.
    """
    for node in nodes:
        for saved in saved_of(node):
            if saved.packed or (saved.current_version, saved.saved_version) != versions:
                continue
            error.__dict__.update(
                node=node,
                operator=node.name(),
                saved_name=saved.name,
                shape=saved.shape,
                dtype=saved.dtype,
                saved_version=versions[1],
                current_version=versions[0],
            )
            return node
    return None
