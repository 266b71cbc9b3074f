"""The typed interface follows the declarations."""

from __future__ import annotations

from gradscope.runtime.ops.declaration import stubs


def test_interface_is_up_to_date():
    for target, text in stubs.render().items():
        assert target.read_text(encoding="utf-8") == text, "run: python -m gradscope.runtime.ops.declaration.stubs"


def test_a_function_in_python_has_its_own_types_in_the_stub() -> None:
    lines = next(text for path, text in stubs.render().items() if path.name == "interface.pyi").splitlines()
    assert (
        "def allclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., "
        "equal_nan: builtins.bool = ...) -> builtins.bool: ..."
    ) in lines
    assert "    def __setitem__(self, index: Any, value: Any) -> None: ..." in lines
