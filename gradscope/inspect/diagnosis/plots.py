"""Explanations as pictures; Matplotlib (the extra ``plots``) is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..records.records import TensorSummary

__all__ = ["bars", "lines", "new_axes", "plot_histogram", "svg_of"]


def new_axes(ax: Any = None, *, width: float = 8.0, height: float = 4.0) -> Any:
    """Return the axes to draw on.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, optional
        The caller's own.
    width, height : float
        In inches, for new ones.

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure  # optional dependency
    except ImportError as error:
        raise ImportError(
            "plot() needs Matplotlib, which is not installed\nInstall it: pip install 'gradscope-debugger[plots]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def svg_of(plot: Callable[[], Any]) -> bytes:
    """Return what a function draws in SVG; nothing where Matplotlib is not installed.

    Parameters
    ----------
    plot : callable
        Returns axes.
    """
    try:
        figure = plot().figure
    except ImportError:
        return b""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg")
    return drawn.getvalue()


def bars(
    names: Sequence[str],
    values: Sequence[float],
    *,
    title: str,
    xlabel: str,
    colors: Sequence[str] | None = None,
    log: bool = False,
    ax: Any = None,
) -> Any:
    """Draw horizontal bars, the first on top.

    Parameters
    ----------
    colors : sequence of str, optional
        One per bar.
    log : bool
        A logarithmic axis, if anything is above zero.
    """
    ax = new_axes(ax, height=max(2.0, 0.6 + 0.25 * len(names)))
    ax.barh(range(len(names)), values, color=colors)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    if log and any(value > 0 for value in values):
        ax.set_xscale("log")
    ax.set_title(title)
    ax.set_xlabel(xlabel)
    return ax


def lines(series: Mapping[str, Sequence[float]], *, title: str, xlabel: str, ylabel: str, ax: Any = None) -> Any:
    """Draw one line a series."""
    ax = new_axes(ax)
    for name, values in series.items():
        ax.plot(range(1, len(values) + 1), values, marker="o", label=name)
    ax.set_title(title)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_ylim(bottom=0)
    if len(series) > 1:
        ax.legend()
    return ax


def plot_histogram(summary: TensorSummary, ax: Any = None) -> Any:
    """Draw how the magnitudes of a tensor are distributed, by power of two.

    Parameters
    ----------
    summary : TensorSummary
        From :func:`gradscope.inspect.summarize`, or of a node's gradients.

    Raises
    ------
    ImportError
        If Matplotlib (the extra ``plots``) is not installed.

    See Also
    --------
    summarize

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> summary = gi.summarize(gs.tensor([3.0, -4.0, 0.0]), "grad")
    >>> gi.plot_histogram(summary).get_title()  # doctest: +SKIP
    'grad (1 zero left out)'
    """
    ax = new_axes(ax)
    ax.bar([k for k, _ in summary.histogram], [number for _, number in summary.histogram], width=0.9, align="edge")
    left_out = [(summary.zeros, "zero"), (summary.nans, "NaN"), (summary.infs, "Inf")]
    aside = ", ".join(f"{number:,} {what}" for number, what in left_out if number)
    ax.set_title(f"{summary.name or 'magnitudes'}{f' ({aside} left out)' if aside else ''}")
    ax.set_xlabel("log2 of the magnitude")
    ax.set_ylabel("elements")
    return ax
