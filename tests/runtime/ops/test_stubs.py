"""The typed interface follows the declarations."""

from __future__ import annotations

from gradscope.runtime.ops import stubs


def test_interface_is_up_to_date():
    assert stubs.TARGET.read_text(encoding="utf-8") == stubs.render(), "run: python -m gradscope.runtime.ops.stubs"
