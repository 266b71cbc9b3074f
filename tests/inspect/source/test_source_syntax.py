"""The syntax of a file and of a function."""

import ast
import functools
import json
import linecache

from gradscope.inspect.source.source_syntax import definition_line, last_name, syntax_of, syntax_tree


class Model:
    @staticmethod
    @functools.cache
    def forward(x):
        return x

    def backward(self):
        return lambda: None


def line_with(text):
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if text in line)


def test_a_function_is_defined_below_its_decorators():
    forward = Model.forward.__wrapped__.__code__
    assert definition_line(forward) == line_with("def forward(x)")
    assert forward.co_firstlineno < definition_line(forward)
    assert definition_line(Model.backward.__code__) == line_with("def backward(self)")


def test_without_source_the_line_is_that_of_the_code():
    scope = {}
    exec(compile("\n\ndef f():\n    pass\n", "<nowhere>", "exec"), scope)
    assert syntax_of(scope["f"].__code__) is None
    assert definition_line(scope["f"].__code__) == 3


def test_the_syntax_of_a_function_is_its_own_and_of_a_library_none():
    assert ast.unparse(syntax_of(Model.backward.__code__)).startswith("def backward(self):")
    assert syntax_of(Model.backward(None).__code__) is None  # a lambda is no statement
    assert syntax_of(json.dumps.__code__) is None


def test_the_last_name_of_an_expression():
    names = [ast.parse(text, mode="eval").body for text in ("torch.argmax", "argmax", "f()(x)")]
    assert [last_name(name) for name in names] == ["argmax", "argmax", ""]


def test_syntax_is_that_of_the_text_as_it_is_now(tmp_path):
    file = tmp_path / "model.py"
    file.write_text("a = 1\n")
    first = syntax_tree(str(file))
    assert syntax_tree(str(file)) is first
    file.write_text("a = 1\nb = 22\n")
    linecache.checkcache(str(file))
    assert len(syntax_tree(str(file)).body) == 2
    assert syntax_tree(str(tmp_path / "none.py")) is None
