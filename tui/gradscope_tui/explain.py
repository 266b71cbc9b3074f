"""Explanations where they help: why a NaN appeared at this stop, and questions on the command line.

What concerns the program's tensors is computed on the program's own thread, as every expression is; what comes back
is frozen data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.explanations.nan_causes import backward_cause, element_of
from gradscope.inspect.explanations.nan_looks import birth_of, first_bad
from gradscope.inspect.explanations.topics import TOPICS, find_topic, suggest, topic_text
from gradscope.inspect.lines.verbs import UsageError
from gradscope_tui.session import has_ended
from gradscope_tui.threads import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.records import NodeRecord, StopReason
    from gradscope_tui.session import Session

__all__ = ["EXPLAIN", "bad_value_here", "explain", "explain_stop"]

EXPLAIN = ("explain [TOPIC | CODE]", "why it has stopped here; or a short text such as nan, inplace, GS101")
"""How the question is typed on the command line, besides the verbs of line mode, and what it answers."""

_HERE = "__import__('gradscope_tui.explain', fromlist=['*']).bad_value_here(node, grads, produced, saved)"
_WRITERS = "__import__('gradscope_tui.writers', fromlist=['*']).writers_of(saved, {!r})"


async def explain(session: Session, topic: str) -> str:
    """Return why a session has stopped, or the text of a topic.

    Parameters
    ----------
    session : Session
    topic : str
        A topic, the code of a finding, or nothing.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        If there is no such topic.
    """
    return _topic(topic) if topic else await explain_stop(session)


async def explain_stop(session: Session) -> str:
    """Return why a session has stopped where it has: who produced the NaN and out of what, what was written, ...

    Parameters
    ----------
    session : Session

    Returns
    -------
    str
    """
    reason: StopReason | None = session.reason
    kind = reason.kind if reason is not None else ""
    node = session.nodes[session.current] if session.current >= 0 else None
    if node is not None and node.grad_inputs is not None and not has_ended(session):
        found: str = await on_thread(lambda: session.evaluate(_HERE))
        if found:
            return found
    if kind == "violation" and not has_ended(session):
        return await _explain_violation(session)
    return f"{reason}\nexplain TOPIC explains one of: {', '.join(TOPICS)}"


async def _explain_violation(session: Session) -> str:
    """Return the line that wrote what a node has saved."""
    node = session.nodes[session.current]
    node = await on_thread(lambda: session.inspect(node.index))
    written = [(s.name, s.saved_version, s.current_version) for s in node.saved if s.state == "modified"]
    writers: str = await on_thread(lambda: session.evaluate(_WRITERS.format(written)))
    return f"{writers or '`gradscope check SCRIPT` names the line that wrote it'}\n`:explain inplace` says more"


def _topic(word: str) -> str:
    from gradscope.check.codes import CODES, explain

    if word.upper() in CODES:
        return explain(word)
    topic = find_topic(word)
    if topic is None:
        close = suggest(word, CODES)
        raise UsageError(f"no code or topic {word!r}; " + (f"did you mean {' or '.join(close)}?" if close else ""))
    return topic_text(topic)


def bad_value_here(node: NodeRecord, grads: Sequence[Any], produced: Sequence[Any] | None, saved: Iterable[str]) -> str:
    """Return who made the NaN or infinity that a node has produced, and out of what.

    Parameters
    ----------
    node : NodeRecord
    grads, produced : sequence of (Tensor or None)
        The gradients that arrived and those that it produced.
    saved : SavedNamespace
        Its saved tensors.

    Returns
    -------
    str
        Empty where there is none.
    """
    for tensor in produced or ():
        if tensor is None:
            continue
        values = adapter_for(tensor).to_host(tensor)
        bad = first_bad(values)
        if bad is None:
            continue
        arrived = [adapter_for(grad).to_host(grad) for grad in grads if grad is not None]
        if any(first_bad(grad) is not None for grad in arrived):
            return f"{node.name} passes on what has arrived: the gradient that it got is not finite already"
        elements = _elements(saved, values, bad)
        grad = element_of(arrived[0], values.shape, bad) if arrived else None
        cause = backward_cause(node.operator, grad, elements, float(abs(values[bad])), "")
        operands = [(name, value) for name, value in elements.items() if value is not None]
        if grad is not None:
            operands.append(("gradient", grad))
        return str(birth_of("backward", node.name, node.module, node.location, cause, values, bad, tuple(operands)))
    return ""


def _elements(saved: Any, values: Any, bad: tuple[int, ...]) -> dict[str, float | None]:
    """Return the elements of saved tensors that belong to a bad one."""
    found: dict[str, float | None] = {}
    for name in saved:
        tensor = saved[name]
        if isinstance(tensor, (list, type(None))):
            continue
        array = adapter_for(tensor).to_host(tensor)
        if array.dtype.kind not in "fiub" or not array.size:
            continue
        found[name] = element_of(array, values.shape, bad)
        if found[name] is None and array.size == 1:
            found[name] = float(array.reshape(-1)[0])
    return found
