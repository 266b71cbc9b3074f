"""Looking into tensors: a page at a time, for a screen; whatever their size, what is asked for alone leaves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy

from ...records.records import Index, TensorPage, TensorSubject, TensorSummary
from ...records.tensor_pages import compare, find_element, flat_page, page_of
from ...records.tensor_statistics import summarize
from .session_lifecycle import DebuggerCore

__all__ = ["TensorQueries", "save_array"]

T = TypeVar("T")


class TensorQueries(DebuggerCore):
    """What can be asked of a tensor at a stop; all of it is done on the program's own thread."""

    def elements(self, expression: str, start: int = 0, stop: int = 1 << 20) -> TensorPage:
        """Return elements of an expression's value, which is a tensor, an array or a number, in C order.

        Raises
        ------
        TypeError
            If it is something else.
        """
        return self._with(TensorSubject(expression), lambda array, against: flat_page(array, start, stop))

    def tensor_page(self, subject: TensorSubject, index: Sequence[Index]) -> TensorPage:
        """Return a part of a tensor, or of how it differs from another.

        Parameters
        ----------
        index : sequence of int or (int, int)
            For each dimension one place, or where the part begins and ends there.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        TypeError, ValueError
            If the expression is no tensor, has no such part, or the two tensors differ in shape.

        Examples
        --------
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> session = gi.debug((gs.ones(3, 4, requires_grad=True) * 2).sum())
        >>> state = session.wait()
        >>> session.step()
        >>> state = session.wait()
        >>> session.tensor_page(gi.TensorSubject("grad"), (1, (2, 4)))
        TensorPage(shape=(3, 4), dtype='float32', values=(1.0, 1.0))
        >>> session.cont()
        >>> state = session.wait()
        """
        return self._with(subject, lambda array, against: page_of(array, index, against, subject.measure))

    def tensor_summary(self, subject: TensorSubject) -> TensorSummary:
        """Return a tensor, or how it differs from another, in numbers."""

        def ask(array: Any, against: Any) -> TensorSummary:
            name = subject.expression
            return summarize(array if against is None else compare(array, against, subject.measure), name)

        return self._with(subject, ask)

    def find_element(self, subject: TensorSubject, sought: str, after: int = -1) -> int | None:
        """Return the place of an element in C order, None if there is none.

        Parameters
        ----------
        sought : str
            ``'not finite'``, the next after the element `after`; ``'largest'`` or ``'smallest'``, by magnitude.
        """
        return self._with(subject, lambda array, against: find_element(array, sought, after, against, subject.measure))

    def save_tensor(self, subject: TensorSubject, path: str) -> str:
        """Write a tensor, or how it differs from another, into a new file as ``numpy.save`` does; return its path.

        Raises
        ------
        FileExistsError
            If the file is there already: it is kept as it is.
        """

        def ask(array: Any, against: Any) -> str:
            return save_array(array if against is None else compare(array, against, subject.measure), path)

        return self._with(subject, ask)

    def _with(self, subject: TensorSubject, ask: Callable[[Any, Any], T]) -> T:
        """Ask something of the arrays of a subject, where they are."""
        return self._at_stop(lambda place: ask(place.array(subject.expression), place.array(subject.against)))


def save_array(array: Any, path: str) -> str:
    """Write an array into a new file as ``numpy.save`` does; return its path."""
    name = path if path.endswith(".npy") else f"{path}.npy"
    try:
        with open(name, "xb") as file, _removed_unless_complete(name):
            numpy.save(file, array, allow_pickle=False)
    except FileExistsError:
        raise FileExistsError(f"{name} is there already, and is kept as it is\nChoose another name.") from None
    except OSError as error:
        raise OSError(f"cannot write {name}: {error.strerror or error}") from None
    return name


@contextlib.contextmanager
def _removed_unless_complete(name: str) -> Iterator[None]:
    """Remove a file that could not be written to its end."""
    try:
        yield
    except BaseException:
        os.unlink(name)
        raise
