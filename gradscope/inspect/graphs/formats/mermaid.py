"""Mermaid, which Markdown on many sites draws."""

from __future__ import annotations

from ...output.terminal_text import printable
from ..folding import fold_to_fit
from ..graph_model import BackwardGraph
from .graph_format_registry import graph_format
from .picture import Box, make_picture
from .theme import LIGHT, MARKS

__all__ = ["to_mermaid"]

# Mermaid refuses more than 500 edges, and few pages have room for so many boxes.
_MOST_BOXES = 200

_SHAPES = {"leaf": ("([", "])"), "blocks": ("[[", "]]"), "module": ("[", "]")}


@graph_format("mermaid", ".mmd", picture=True, place=3)
def to_mermaid(graph: BackwardGraph) -> str:
    r"""Return a graph as a Mermaid flowchart.

    Parameters
    ----------
    graph : BackwardGraph
        Folded first if it has more nodes than Mermaid draws.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(2, requires_grad=True)
    >>> print("\n".join(to_mermaid(gi.graph((w * w).sum(), params={"w": w})).splitlines()[:6]))
    flowchart TD
      n0["<b>Sum</b><br/>float32 ()"]:::gs-root
      n1["<b>Mul</b><br/>float32 (2)"]:::gs-node
      n2(["<b>w</b><br/>float32 (2)"]):::gs-leaf
      n0 --> n1
      n1 -->|"×2"| n2
    """
    picture = make_picture(fold_to_fit(graph, _MOST_BOXES))
    lines = ["flowchart TD"]
    lines += [f"  n{place}{_shape(box)}:::{_style(box)}" for place, box in enumerate(picture.boxes)]
    for arrow in picture.arrows:
        label = f'|"×{arrow.count}"|' if arrow.count > 1 else ""
        lines.append(f"  n{arrow.source} -->{label} n{arrow.target}")
    for kind in dict.fromkeys(box.kind for box in picture.boxes if not box.mark):
        fill, stroke = LIGHT[kind]
        lines.append(f"  classDef gs-{kind} fill:{fill},stroke:{stroke},color:#1c2230")
    for mark in dict.fromkeys(box.mark for box in picture.boxes if box.mark):
        lines.append(f"  classDef gs-{mark} fill:#ffffff,stroke:{MARKS[mark]},stroke-width:3px,color:#1c2230")
    return "\n".join([*lines, ""])


def _style(box: Box) -> str:
    # Mermaid has classes "node" and "root" of its own.
    return f"gs-{box.mark or box.kind}"


def _shape(box: Box) -> str:
    opening, closing = _SHAPES.get(box.kind, ("[", "]"))
    text = "<br/>".join([f"<b>{_escaped(box.title)}</b>", *map(_escaped, box.lines)])
    return f'{opening}"{text}"{closing}'


def _escaped(text: str) -> str:
    """Return text with all that Mermaid or HTML would read as markup as character references."""
    return "".join(
        letter if letter not in _SPECIAL else f"#{ord(letter)};" for letter in printable(text).replace("\n", " ")
    )


_SPECIAL = set('"#&;<>`|\\')
