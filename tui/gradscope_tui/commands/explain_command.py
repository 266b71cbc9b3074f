"""Explanations where they help: why a NaN appeared at this stop, and questions on the command line.

What concerns the program's tensors is computed on the program's own thread, as every expression is; what comes back
is frozen data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradscope.inspect.debugging.prompt.plain_text import write_line
from gradscope.inspect.debugging.prompt.prompt_verbs import UsageError
from gradscope.inspect.diagnosis.explain_topics import TOPICS, find_topic, suggest, topic_text
from gradscope_tui.sessions.session_protocol import has_ended
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.records.records import StopReason
    from gradscope_tui.sessions.session_protocol import Session

__all__ = ["EXPLAIN", "explain", "explain_stop"]

EXPLAIN = ("explain [TOPIC | CODE]", "why it has stopped here; or a short text such as nan, inplace, GS101")
"""How the question is typed on the command line, besides the verbs of line mode, and what it answers."""


async def explain(session: Session, topic: str) -> str:
    """Return why a session has stopped, or the text of a topic.

    Parameters
    ----------
    topic : str
        A topic, the code of a finding, or nothing.

    Raises
    ------
    UsageError
        If there is no such topic.
    """
    return _topic(topic) if topic else await explain_stop(session)


async def explain_stop(session: Session) -> str:
    """Return why a session has stopped where it has: who produced the NaN and out of what, what was written, ..."""
    reason: StopReason | None = session.reason
    found = await on_thread(session.explain) if session.current >= 0 and not has_ended(session) else ""
    if found:
        return found
    if reason is not None and reason.kind == "violation":
        return _explain_violation(reason)
    return f"{reason}\nexplain TOPIC explains one of: {', '.join(TOPICS)}"


def _explain_violation(reason: StopReason) -> str:
    """Return the lines that wrote what a node has saved."""
    writers = "\n".join(map(write_line, reason.writes))
    return f"{writers or '`gradscope check SCRIPT` names the line that wrote it'}\n`:explain inplace` says more"


def _topic(word: str) -> str:
    from gradscope.check.findings import (
        finding_codes,
    )  # this import loads the sanitizer and its rules, which the first paint does without

    if finding_codes.find_code(word) is not None:
        return finding_codes.explain(word)
    topic = find_topic(word)
    if topic is None:
        close = suggest(word, finding_codes.all_codes())
        raise UsageError(f"no code or topic {word!r}; " + (f"did you mean {' or '.join(close)}?" if close else ""))
    return topic_text(topic)
