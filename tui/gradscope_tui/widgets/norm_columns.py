"""The columns that show how the gradient changes along a backward: its norm, a bar, and a ratio."""

from __future__ import annotations

import math

from gradscope.inspect.diagnosis.flow.norm_trend import EXPLODING, VANISHING

__all__ = ["norm_bar", "norm_columns", "norm_scale"]

_NORM_WIDTH = 7
"""Cells of a norm."""

_LEAST, _MOST = -8, 3
"""The decades that a bar can show."""

_RATIO_WIDTH = 7
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def norm_columns(norm: float | None, before: float | None, bar: int) -> list[tuple[str, str]]:
    """Return what a row shows of a gradient.

    Parameters
    ----------
    norm : float or None
        Its 2-norm; None where it is not known.
    before : float or None
        That of the gradient at the node which it came from.
    bar : int
        Cells of the bar; 0 for the norm alone.

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
    color = _color(norm)
    columns = [(f"{_norm_text(norm):>{_NORM_WIDTH}}", color)]
    if bar:
        columns.append((f" {norm_bar(norm, bar):<{bar}}", color or "good"))
        columns.append((f"{_ratio_text(norm, before):>{_RATIO_WIDTH}}", "dim"))
    return columns


def norm_scale() -> str:
    """Return what the ends of a bar stand for.

    Examples
    --------
    >>> norm_scale()
    'norm 1e-8…1e+3'
    """
    return f"norm 1e{_LEAST:+}…1e{_MOST:+}"


def norm_bar(norm: float | None, width: int) -> str:
    """Draw a norm on a logarithmic scale; NaN and Inf fill it, and zero is empty.

    Examples
    --------
    >>> [norm_bar(norm, 11) for norm in (1e-8, 1e-5, 1.0, 1e9, 0.0)]
    ['▏', '███', '████████', '███████████', '']
    """
    if not norm:
        return ""
    share = (math.log10(norm) - _LEAST) / (_MOST - _LEAST) if math.isfinite(norm) else 1.0
    eighths = max(1, round(min(1.0, share) * width * 8))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _color(norm: float | None) -> str:
    if norm is None:
        return ""
    if not math.isfinite(norm):
        return "bad"
    return "warn" if norm < VANISHING or norm > EXPLODING else ""


def _norm_text(norm: float | None) -> str:
    if norm is None:
        return ""
    if math.isnan(norm):
        return "NaN"
    if math.isinf(norm):
        return "Inf"
    text = f"{norm:.1e}" if norm else "0"
    return text if len(text) <= _NORM_WIDTH else f"{norm:.0e}"


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
