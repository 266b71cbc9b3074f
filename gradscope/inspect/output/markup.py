"""Pages and pictures in which no text is taken for markup: elements, and templates that escape what they get.

A page names by their hashes the style and the script that are its own, in a Content-Security-Policy: a browser obeys no
other, and fetches nothing.
"""

from __future__ import annotations

import functools
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from .terminal_text import printable

if TYPE_CHECKING:
    import jinja2  # it loads with the first page that is made

__all__ = ["Markup", "element", "policy", "render"]


def element(name: str, attributes: Mapping[str, Any] | None = None, *children: str) -> Markup:
    """Return an element of HTML or SVG.

    Parameters
    ----------
    *children : str
        Text, which is escaped, or Markup.

    Examples
    --------
    >>> print(element("text", {"x": 3}, "<b>", element("title", None, "a & b")))
    <text x="3">&lt;b&gt;<title>a &amp; b</title></text>
    """
    words = "".join([f' {key}="{_escaped(str(value))}"' for key, value in (attributes or {}).items()])
    if not children:
        return Markup(f"<{name}{words}/>")
    return Markup(f"<{name}{words}>{''.join(map(_escaped, children))}</{name}>")


def _escaped(text: str) -> str:
    return text if type(text) is Markup else escape(printable(text))


def render(template: str, **values: Any) -> str:
    """Return what a template of this package makes of values.

    Parameters
    ----------
    template : str
        Its path below ``gradscope/inspect``.
    **values : object
        All of it text that is escaped, but for Markup.
    """
    return _templates().get_template(template).render(values)


@functools.cache
def _templates() -> jinja2.Environment:
    import jinja2  # it loads with the first page that is made

    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        loader=jinja2.FunctionLoader(lambda name: files("gradscope.inspect").joinpath(name).read_text("utf-8")),
    )


def policy(*, style: str, script: str = "") -> str:
    """Return the Content-Security-Policy of a page with one style and at most one script, both inside it.

    Parameters
    ----------
    style, script : str
        Exactly what stands between their tags.

    Examples
    --------
    >>> policy(style="").split("; ")[0], len(policy(style="").split("; "))
    ("default-src 'none'", 4)
    """
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", f"style-src {_source(style)}"]
    return "; ".join(rules + [f"script-src {_source(script)}"] * bool(script))


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
