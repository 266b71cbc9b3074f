"""What cannot be done is said, with its reason, in a corner of the screen."""

from __future__ import annotations

from typing import Any

from textual.app import App

from gradscope_tui.sessions.session_protocol import Session, why_not

__all__ = ["can", "refuse"]

SECONDS = 4
"""How long it is said."""


def refuse(app: App[Any], text: str) -> None:
    """Say why something cannot be done."""
    app.clear_notifications()
    app.notify(text, severity="warning", timeout=SECONDS, markup=False)


def can(app: App[Any], session: Session, action: str) -> bool:
    """Return whether a session can ever do an action; if not, the reason is said."""
    reason = why_not(session, action)
    if reason:
        refuse(app, reason)
    return not reason
