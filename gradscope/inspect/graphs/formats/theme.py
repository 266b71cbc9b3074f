"""The colours of pictures, and how wide a text is."""

from __future__ import annotations

__all__ = ["DARK", "FONT", "LIGHT", "MARKS", "colours", "text_width"]

FONT = "Helvetica"

# (fill, stroke) by the kind of a box.
LIGHT = {
    "node": ("#ffffff", "#8a94a6"),
    "root": ("#fff3d6", "#c98a00"),
    "leaf": ("#e3f4e6", "#3f8f52"),
    "module": ("#e6eefb", "#4a74b8"),
    "blocks": ("#ece6fb", "#7157b3"),
    "chain": ("#f1f3f5", "#8a94a6"),
    "order": ("#f1f3f5", "#8a94a6"),
}
DARK = {
    "node": ("#23272e", "#7a8598"),
    "root": ("#3d3216", "#d9a62e"),
    "leaf": ("#1d3324", "#58b06d"),
    "module": ("#1e2a3f", "#6b95d8"),
    "blocks": ("#2b2440", "#9a80dd"),
    "chain": ("#2a2f37", "#7a8598"),
    "order": ("#2a2f37", "#7a8598"),
}
MARKS = {"nonfinite": "#d62839", "modified": "#d62839", "failed": "#d62839"}

_NARROW = set("iljtfI.,:;'|!()[]/ ·")
_WIDE = set("mwMWQOGD@%×→…")


def colours(kind: str) -> tuple[str, str]:
    """Return (fill, stroke) of a kind of box on a light ground."""
    return LIGHT.get(kind, LIGHT["node"])


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is in a sans-serif font, rather too wide than too narrow.

    Parameters
    ----------
    size : float
        Of the font, in pixels.

    Returns
    -------
    float
        Pixels.
    """
    units = 0.0
    for letter in text:
        if letter in _NARROW:
            units += 0.36
        elif letter in _WIDE:
            units += 0.92
        elif letter.isupper():
            units += 0.72
        else:
            units += 0.59 if letter.isascii() else 1.0
    return units * size
