"""Writes the types of every function and method that the declarations give rise to, and their examples.

``interface.pyi`` has the types of the package and of tensors, ``gradscope/special.pyi`` and ``linalg.pyi`` those of
these modules, ``examples.txt`` an example of each operator.

Run ``python -m gradscope.runtime.ops.declaration.stubs`` after declaring an operator; a test holds that the files are
up to date.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...late_attributes import ATTACHED
from ...tensor.tensor import Tensor
from ..execution.codegen.docstrings import EXAMPLES
from ..families import METHODS, NAMESPACES, PUBLIC
from . import examples
from .registry import Operator, Parameter

__all__ = ["render"]

_HERE = Path(__file__)
_PACKAGE = _HERE.parents[3]

_HEADER = """\
# Written by gradscope.runtime.ops.declaration.stubs from the operators' declarations: do not edit.
import builtins
from collections.abc import Sequence
from typing import Any

from ..tensor.tensor import Tensor

"""

_NAMESPACE_HEADER = """\
# Written by gradscope.runtime.ops.declaration.stubs from the operators' declarations: do not edit.
import builtins
{sequence}from typing import Any

{also}from .runtime.tensor.tensor import Tensor

"""

# What a module has beside functions.
_ALSO = {"linalg": "from .runtime.ops.execution.array_errors import LinAlgError as LinAlgError\n"}

_LINE_LENGTH = 120

_TYPES = {
    "Tensor": "Tensor",
    "Tensor?": "Tensor | None",
    "Tensor[]": "Sequence[Tensor]",
    "Scalar": "builtins.complex",
    "Scalar?": "builtins.complex | None",
    "int": "builtins.int",
    "int?": "builtins.int | None",
    "int[]": "Sequence[builtins.int] | builtins.int",
    "int[]?": "Sequence[builtins.int] | builtins.int | None",
    "float": "builtins.float",
    "float?": "builtins.float | None",
    "bool": "builtins.bool",
    "str": "builtins.str",
    "str?": "builtins.str | None",
}

# What the annotations of functions in Python become; all others, which name what a stub does not import, become Any.
_ANNOTATED = {
    "Tensor": "Tensor",
    "Tensor | None": "Tensor | None",
    "Sequence[Tensor]": "Sequence[Tensor]",
    "tuple[Tensor, Tensor]": "builtins.tuple[Tensor, Tensor]",
    "tuple[Tensor, Tensor, Tensor]": "builtins.tuple[Tensor, Tensor, Tensor]",
    "tuple[Tensor, ...]": "builtins.tuple[Tensor, ...]",
    **{name: f"builtins.{name}" for name in ("bool", "int", "float", "str")},
    **{f"{name} | None": f"builtins.{name} | None" for name in ("bool", "int", "float", "str")},
}


def _type_of(op: Operator, parameter: Parameter) -> str:
    numbers = op.numbers == "either" or (op.numbers == "second" and parameter is not op.tensors[0])
    if parameter.type == "Tensor" and op.promote and numbers:
        return "Tensor | builtins.complex"
    return _TYPES.get(parameter.type, "Any")


def _operator_parameters(op: Operator, with_out: bool) -> list[str]:
    parts, starred = [], False
    for parameter in op.parameters:
        if parameter.keyword_only and not starred:
            parts.append("*")
            starred = True
        default = "" if parameter.default is None else " = ..."
        parts.append(f"{parameter.name}: {_type_of(op, parameter)}{default}")
    if with_out:
        parts += ([] if starred else ["*"]) + ["out: Tensor | None = ..."]
    return parts


def _composite_parameters(function: Callable[..., Any]) -> list[str]:
    parts: list[str] = []
    starred = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}: Any")
            starred = True
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}: Any")
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "" if parameter.default is inspect.Parameter.empty else " = ..."
        parts.append(f"{parameter.name}: {_ANNOTATED.get(parameter.annotation, 'Any')}{default}")
    return parts


def _definition(name: str, function: Callable[..., Any], indent: str, method: bool) -> str:
    if not inspect.isfunction(function):
        return f"{indent}{name}: Any\n"
    op: Operator | None = getattr(function, "operator", None)
    if op is not None and inspect.unwrap(function) is op.function:
        parameters = _operator_parameters(op, bool(op.out))
        result = "builtins.tuple[Tensor, ...]" if op.output_list else "Any" if op.multi else "Tensor"
    else:
        parameters = _composite_parameters(function)
        inplace = name.endswith("_") and not name.startswith("__")
        result = (
            "Tensor"
            if op is not None or inplace
            else _ANNOTATED.get(inspect.signature(function).return_annotation, "Any")
        )
    if not method and parameters:  # the first tensor is PyTorch's ``input``
        parameters[0] = parameters[0].replace("self:", "input:", 1)
    if name == "__setitem__":
        return f"{indent}def {name}(self, index: Any, value: Any) -> None: ...\n"
    if name.startswith("__") and len(parameters) > 1:
        return f"{indent}def {name}(self, other: Any) -> Tensor: ...{_override(name)}\n"
    if method and parameters:
        first = parameters[0].partition(":")[0]
        parameters[0] = first if first.startswith("*") else "self"
        parameters = _without_leading_star(parameters)
    return f"{indent}def {name}({', '.join(parameters)}) -> {result}: ...\n"


def _override(name: str) -> str:
    return "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""


def _without_leading_star(parameters: list[str]) -> list[str]:
    return ["self", *parameters] if parameters[0].startswith("*") else parameters


def render() -> dict[Path, str]:
    """Return the text of each file."""
    texts = {_HERE.parents[1] / "interface.pyi": _interface()}
    for space, functions in NAMESPACES.items():
        lines = [_wrapped(_definition(name, functions[name], "", method=False)) for name in sorted(functions)]
        texts[_PACKAGE / f"{space}.pyi"] = _namespace_header(space, lines) + "".join(lines)
    texts[EXAMPLES] = examples.render(_called())
    return texts


def _called() -> dict[str, Operator]:
    """Return the public operators by how they are called in an example; a function under its own name comes first."""
    spaces = {"gs": PUBLIC, **{f"gs.{space}": functions for space, functions in NAMESPACES.items()}}
    found = {f"{space}.{name}": function for space, functions in spaces.items() for name, function in functions.items()}
    found.update({f".{name}": function for name, function in METHODS.items() if not name.endswith("_")})
    operators = {call: function.operator for call, function in found.items() if hasattr(function, "operator")}
    return dict(sorted(operators.items(), key=lambda item: item[0] != f"gs.{item[1].name}"))


def _namespace_header(space: str, lines: list[str]) -> str:
    sequence = "from collections.abc import Sequence\n" if any("Sequence[" in line for line in lines) else ""
    return _NAMESPACE_HEADER.format(sequence=sequence, also=_ALSO.get(space, ""))


def _wrapped(line: str) -> str:
    """Return a definition as the formatter writes it: in one line, with its parameters in one, or with one in each."""
    if len(line.rstrip("\n")) <= _LINE_LENGTH:
        return line
    name, _, rest = line.partition("(")
    parameters, _, result = rest.rpartition(") -> ")
    if len(parameters) + 4 > _LINE_LENGTH:
        parameters = parameters.replace(", ", ",\n    ") + ","
    return f"{name}(\n    {parameters}\n) -> {result}"


def _interface() -> str:
    lines = [_HEADER]
    for name in sorted(PUBLIC):
        if name.isidentifier():
            lines.append(_definition(name, PUBLIC[name], "", method=False))
    lines.append("\nclass TensorMethods:\n")
    for name in sorted(METHODS):
        lines.append(_definition(name, METHODS[name], "    ", method=True))
    lines.extend(f"    {name}: Any\n" for name in sorted(ATTACHED[Tensor]))
    return "".join(lines)


def main() -> None:
    """Write the files."""
    for target, text in render().items():
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
