"""The page of the documentation about operators, written from the table that the tests hold.

Write it with ``python -m tests.differential.operators_page``.
"""

from __future__ import annotations

from pathlib import Path

import torch

from tests.differential.operator_database import ENTRIES, refusals
from tests.differential.operators_left_out import CANNOT_APPLY, aspects_left_out

__all__ = ["PATH", "page"]

PATH = Path(__file__).parents[2] / "docs" / "operators.md"

TEXT = """\
# Operators compared with PyTorch

PyTorch comes with a database of its operators, on which its own tests run: for each the forms that it has (method, in
place, `out=`, aliases), the dtypes that it takes, inputs for it, and inputs that it refuses. Gradscope's tests run it
too: results, dtypes and shapes, gradients by every input, second gradients, the in-place form, what is written into
`out=`, complex numbers, further dtypes, and the class of the error for each wrong call must be PyTorch's. This page is
written (`python -m tests.differential.operators_page`) from the table that these tests hold to be exact, on a part of
the inputs at each run, and on all of them by `python -m tests.differential.operator_database --all`.

| PyTorch {version} | |
|---|---|
| entries of the database | {entries} |
| that can apply | {applicable} |
| the same in every aspect | {right} ({right_share}) |
| of them not there | {missing} |
| wrong calls that PyTorch refuses | {refused} |
| refused with the same class of error | {refused_right} ({refused_share}) |

## What differs

A number after *error* is the place of the wrong call among those of its entry.

| operator | in | why |
|---|---|---|
{left_out}

## What cannot apply

| why | operators |
|---|---|
{cannot}
"""


def page() -> str:
    """Return the text of the page."""
    cannot = {name for names in CANNOT_APPLY.values() for name in names.split()}
    applicable = [name for name in ENTRIES if name not in cannot]
    left_out = {name: aspects for name, aspects in aspects_left_out(all_samples=True).items() if name not in cannot}
    refused = {name: len(refusals(ENTRIES[name])) for name in applicable}
    right = len(applicable) - sum(any(not a.startswith("error") for a in v) for v in left_out.values())
    refused_right = sum(refused.values()) - sum(_refusals_left_out(refused[name], v) for name, v in left_out.items())
    return TEXT.format(
        version=torch.__version__.partition("+")[0],
        entries=len(ENTRIES),
        applicable=len(applicable),
        right=right,
        right_share=f"{right / len(applicable):.1%}",
        missing=sum("missing" in aspects for aspects in left_out.values()),
        refused=sum(refused.values()),
        refused_right=refused_right,
        refused_share=f"{refused_right / sum(refused.values()):.1%}",
        left_out="\n".join(_row(name, left_out[name]) for name in ENTRIES if name in left_out),
        cannot="\n".join(f"| {why} | {_code(names.split())} |" for why, names in CANNOT_APPLY.items()),
    )


def _refusals_left_out(count: int, aspects: dict[str, str]) -> int:
    return count if "missing" in aspects else sum(aspect.startswith("error") for aspect in aspects)


def _row(name: str, aspects: dict[str, str]) -> str:
    reasons: dict[str, list[str]] = {}
    for aspect, reason in aspects.items():
        reasons.setdefault(reason, []).append(aspect)
    return "\n".join(f"| `{name}` | {', '.join(where)} | {why} |" for why, where in reasons.items())


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PATH.write_text(page())
