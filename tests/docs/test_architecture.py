"""What docs/architecture.md says about adding a thing is done, in a copy of the packages."""

from tests.one_file import example_of, follow, run


def test_an_operator_is_one_declaration(tmp_path):
    folder = follow("Adding an operator", tmp_path)
    assert len(example_of("Adding an operator").files) == 2  # the declaration, and a program that uses it
    stubs = (folder / "gradscope/runtime/ops/interface.pyi").read_text(encoding="utf-8")
    assert "def sech(" in stubs
    done = run(folder, "python -c 'import gradscope; print(gradscope.__file__)'")
    assert done.stdout == f"{folder / 'gradscope' / '__init__.py'}\n"
