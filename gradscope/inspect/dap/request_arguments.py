"""The arguments of an editor's requests: the fields that are read, with their types in the protocol."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, TypeVar

import msgspec

__all__ = ["Arguments", "AttachArguments", "LaunchArguments", "converted"]

T = TypeVar("T")


class LaunchArguments(msgspec.Struct, rename="camel"):
    """What ``launch`` takes; other fields are an editor's own."""

    program: str = ""
    module: str = ""
    args: list[str] = []
    cwd: str = ""
    env: dict[str, str | None] = {}
    console: Literal["internalConsole", "integratedTerminal", "externalTerminal"] = "internalConsole"
    nproc_per_node: int = 0
    non_stop: bool = False
    limits: dict[str, float] = {}
    stop_on_entry: bool = False
    no_debug: bool = False


class AttachArguments(msgspec.Struct, rename="camel"):
    """What ``attach`` takes; other fields are an editor's own."""

    process_id: int | str = ""
    address: str = ""
    ranks: bool = False
    non_stop: bool = False
    limits: dict[str, float] = {}
    stop_on_entry: bool = True


class _Source(TypedDict, total=False):
    path: str


class _Point(TypedDict, total=False):
    line: int
    name: str
    dataId: str
    condition: str | None
    hitCondition: str | None
    logMessage: str | None


class Arguments(TypedDict, total=False):
    """What any other request takes: a field has one type wherever it occurs."""

    linesStartAt1: bool
    columnsStartAt1: bool
    supportsRunInTerminalRequest: bool
    arguments: dict[str, Any] | None
    terminateDebuggee: bool
    source: _Source
    line: int
    column: int
    breakpoints: list[_Point] | None
    filters: list[str]
    threadId: int
    singleThread: bool
    frameId: int | None
    startFrame: int | None
    levels: int | None
    startModule: int | None
    moduleCount: int | None
    variablesReference: int
    start: int | None
    count: int | None
    name: str
    value: str
    expression: str
    context: str
    text: str
    targetId: int


def converted(arguments: Any, kind: type[T]) -> T:
    """Return arguments as what a request takes; fields that are not read are left out.

    Raises
    ------
    ValueError
        If a field is of another type.

    Examples
    --------
    >>> converted({"line": 3, "other": []}, Arguments)
    {'line': 3}
    """
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"an argument is of another type: {error}") from None
