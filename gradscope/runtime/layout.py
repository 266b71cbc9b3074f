"""PyTorch's words for how elements lie in memory: layouts and memory formats."""

from __future__ import annotations

__all__ = ["channels_last", "contiguous_format", "layout", "memory_format", "preserve_format", "strided"]


class layout:  # noqa: N801 - PyTorch's name
    """How a tensor's elements are kept; there is one, :data:`strided`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"gradscope.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # the one of this name, here: a copy would not be recognised


class memory_format:  # noqa: N801 - PyTorch's name
    """The order of a copy's elements in memory, e.g. ``gs.contiguous_format``."""

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
