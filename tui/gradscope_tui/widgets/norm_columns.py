"""The columns that show how the gradient changes along a backward: its norm, a bar, and a ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradscope.inspect.diagnosis.flow.norm_trend import EXPLODING, VANISHING

__all__ = ["NORM_WIDTH", "RATIO_WIDTH", "NormScale", "norm_bar", "norm_columns", "norm_text"]

NORM_WIDTH, RATIO_WIDTH = 7, 7
"""Cells of a norm and of a ratio, with the one before it."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class NormScale:
    """What bars of norms stand for, and which norms are set off.

    Parameters
    ----------
    least, most : float
        The norms at which a bar begins and is full.
    vanishing, exploding : float
        Below the one and above the other a norm is set off.

    Examples
    --------
    >>> str(NormScale()), NormScale().limits
    ('incoming norm 1e-8 to 1e+3', 'vanishing below 1e-7, exploding above 1e+3')
    """

    least: float = 1e-8
    most: float = 1e3
    vanishing: float = VANISHING
    exploding: float = EXPLODING

    def __str__(self) -> str:
        return f"incoming norm {_end(self.least)} to {_end(self.most)}"

    @property
    def limits(self) -> str:
        """Which norms are set off."""
        return f"vanishing below {_end(self.vanishing)}, exploding above {_end(self.exploding)}"

    def share(self, norm: float) -> float:
        """Return how much of a bar a finite norm above zero fills, between 0 and 1."""
        return min(1.0, max(0.0, math.log(norm / self.least) / math.log(self.most / self.least)))

    def color(self, norm: float | None) -> str:
        """Return the color of a pane for a norm; empty for one as others are."""
        if norm is None:
            return ""
        if not math.isfinite(norm):
            return "bad"
        return "warn" if norm < self.vanishing or norm > self.exploding else ""


_SCALE = NormScale()


def norm_columns(
    norm: float | None, before: float | None, bar: int, scale: NormScale = _SCALE
) -> list[tuple[str, str]]:
    """Return what a row shows of a gradient.

    Parameters
    ----------
    norm : float or None
        Its 2-norm; None where it is not known.
    before : float or None
        That of the gradient at the node which it came from.
    bar : int
        Cells of the bar; 0 for the norm alone.
    scale : NormScale
        What the bar stands for.

    Returns
    -------
    list of (str, str)
        Pieces of text of always the same widths, each with the color of a pane.

    Examples
    --------
    >>> norm_columns(0.5, 2.0, 6)
    [('5.0e-01', ''), (' ████▎ ', 'good'), ('  ×0.25', 'dim')]
    >>> norm_columns(float("nan"), 2.0, 6)
    [('    NaN', 'bad'), (' ██████', 'bad'), ('       ', 'dim')]
    >>> norm_columns(None, None, 0)
    [('       ', '')]
    """
    color = scale.color(norm)
    columns = [(f"{norm_text(norm):>{NORM_WIDTH}}", color)]
    if bar:
        columns.append((f" {norm_bar(norm, bar, scale):<{bar}}", color or "good"))
        columns.append((f"{_ratio_text(norm, before):>{RATIO_WIDTH}}", "dim"))
    return columns


def norm_bar(norm: float | None, width: int, scale: NormScale = _SCALE) -> str:
    """Draw a norm on a logarithmic scale; NaN and Inf fill it, and zero is empty.

    Examples
    --------
    >>> [norm_bar(norm, 11) for norm in (1e-8, 1e-5, 1.0, 1e9, 0.0)]
    ['▏', '███', '████████', '███████████', '']
    """
    if not norm:
        return ""
    share = scale.share(norm) if math.isfinite(norm) else 1.0
    eighths = max(1, round(share * width * 8))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _end(norm: float) -> str:
    """Write an end of the scale as short as it goes."""
    mantissa, _, power = f"{norm:.3e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(power):+}"


def norm_text(norm: float | None) -> str:
    """Write a norm in at most seven cells; nothing where it is not known.

    Examples
    --------
    >>> [norm_text(norm) for norm in (0.00123, 1e-200, 0.0, float("nan"), None)]
    ['1.2e-03', '1e-200', '0', 'NaN', '']
    """
    if norm is None:
        return ""
    if math.isnan(norm):
        return "NaN"
    if math.isinf(norm):
        return "Inf"
    text = f"{norm:.1e}" if norm else "0"
    return text if len(text) <= NORM_WIDTH else f"{norm:.0e}"


def _ratio_text(norm: float | None, before: float | None) -> str:
    """Return by what the norm has been multiplied, in at most six cells."""
    ratio = norm / before if norm is not None and before else math.nan
    if not math.isfinite(ratio):
        return ""
    return (
        f"×{ratio:.2g}"
        if not ratio or 0.01 <= ratio < 100
        else f"×{ratio:.0e}".replace("e-0", "e-").replace("e+0", "e")
    )
