"""PyTorch's words for how elements lie in memory: layouts and memory formats."""

from __future__ import annotations

from typing import Any

__all__ = [
    "channels_last",
    "check_memory",
    "check_rank",
    "contiguous_format",
    "format_name",
    "layout",
    "memory_format",
    "preserve_format",
    "strided",
]


class layout:  # noqa: N801 - PyTorch's name
    """How a tensor's elements are kept; there is one, :data:`strided`.

    See Also
    --------
    memory_format : in which order they are.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.ones(2, 3).layout
    gradscope.strided
    >>> isinstance(gs.strided, gs.layout)
    True
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"gradscope.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # pickle looks the name up here: a copy would not be recognised


class memory_format:  # noqa: N801 - PyTorch's name
    """The order of a copy's elements in memory, e.g. ``gs.contiguous_format``.

    ``contiguous_format`` is the order of the dimensions, ``channels_last`` has the channels of images innermost, and
    ``preserve_format`` keeps the order that there is.

    See Also
    --------
    layout : how elements are kept.

    Examples
    --------
    >>> import gradscope as gs
    >>> images = gs.ones(1, 3, 4, 4).contiguous(memory_format=gs.channels_last)
    >>> images.stride(), images.is_contiguous(memory_format=gs.channels_last)
    ((48, 1, 12, 3), True)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"gradscope.{self.name}"

    __reduce__ = layout.__reduce__


strided = layout("strided")

contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")

_FORMATS = ("contiguous_format", "preserve_format", "channels_last")


def format_name(memory_format: Any) -> str:
    """Return the name of a memory format, given as such or as a word; None preserves the order.

    Raises
    ------
    RuntimeError
        If there is no such format.
    """
    name = getattr(memory_format, "name", memory_format) or "preserve_format"
    if name == "contiguous":
        return "contiguous_format"
    if name not in _FORMATS:
        raise RuntimeError(f"unsupported memory format {memory_format!r}\nUse one of: {', '.join(_FORMATS)}.")
    return name


def check_memory(name: str, layout: Any, pin_memory: Any) -> None:
    """Raise for a layout other than the strided one, and for pinned memory, of a factory `name`.

    Raises
    ------
    TypeError
        If they are of another type.
    RuntimeError
        For pinned memory.
    """
    if layout is not None and not isinstance(layout, _layout):
        raise TypeError(
            f"{name}(): argument 'layout' must be gradscope.layout, not {layout.__class__.__name__}\n"
            "There is one: gradscope.strided."
        )
    if pin_memory is not None and not isinstance(pin_memory, bool):
        raise TypeError(f"{name}(): argument 'pin_memory' must be bool, not {pin_memory.__class__.__name__}")
    if pin_memory:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system.\nLeave it away: arrays of the host are not pinned."
        )


_layout = layout


def check_rank(shape: tuple[int, ...]) -> None:
    """Raise RuntimeError for a shape that has no channels to be last."""
    if len(shape) != 4:
        raise RuntimeError(f"required rank 4 tensor to use channels_last format\nIts shape is {list(shape)}.")
