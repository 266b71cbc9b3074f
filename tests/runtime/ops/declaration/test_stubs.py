"""The typed interface follows the declarations."""

from __future__ import annotations

from gradscope.runtime.ops.declaration import stubs


def test_interface_is_up_to_date():
    for target, text in stubs.render().items():
        assert target.read_text(encoding="utf-8") == text, "run: python -m gradscope.runtime.ops.declaration.stubs"
