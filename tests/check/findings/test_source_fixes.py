import pytest

from gradscope.check.findings.source_fixes import without_comment, written_at
from gradscope.inspect import Location


def read(tmp_path, source, operator, line=1):
    path = tmp_path / "program.py"
    path.write_text(source)
    text = source.splitlines()[line - 1].strip()
    return written_at(Location(str(path), line, "<module>", text), operator)


@pytest.mark.parametrize(
    ("source", "operator", "name", "replacement"),
    [
        ("out += skip", "add_", "out", "out = out + skip"),
        ("out *= a + b", "mul_", "out", "out = out * (a + b)"),
        ("out += a if b else c", "add_", "out", "out = out + (a if b else c)"),
        ("self.state -= 1", "sub_", "self.state", "self.state = self.state - 1"),
        ("x.add_(1, alpha=2)", "add_", "x", "x = x.add(1, alpha=2)"),
        ("x.exp_().sum()", "exp_", "x", ""),
        ("y = x.exp_()", "exp_", "x", ""),
        ("x.data.add_(1)", "add_", "x", ""),
        ("x.detach().mul_(2)", "mul_", "x", ""),
        ("x[0].view(3).mul_(2)", "mul_", "x", ""),
        ("x.copy_(y)", "copy_", "x", ""),
        ("x.zero_()", "zero_", "x", ""),
        ("y = gs.relu_(x)", "relu_", "x", ""),
        ("y = F.relu(x, inplace=True)", "relu_", "x", ""),
        ("gs.add(a, b, out=total)", "add", "total", ""),
        ("y = self.activation(x)", "relu_", "", ""),
        ("model(x).add_(1)", "add_", "", ""),
        ("f(a.zero_(), b.add_(1))", "add_", "b", ""),
    ],
)
def test_the_statement_tells_the_variable(tmp_path, source, operator, name, replacement):
    write = read(tmp_path, source, operator)
    assert (write.name, write.replacement, write.into_part) == (name, replacement, False)


@pytest.mark.parametrize("source", ["x[0] = 1", "x[mask] += 2", "x[0, 1:] = y = z"])
def test_an_item_is_a_part(tmp_path, source):
    write = read(tmp_path, source, "copy_")
    assert (write.name, write.replacement, write.into_part) == ("x", "", True)


def test_a_statement_over_several_lines_is_read_whole(tmp_path):
    write = read(tmp_path, "def f(x):\n    x.add_(\n        1,\n    )\n", "add_", line=3)
    assert (write.name, write.replacement) == ("x", "x = x.add(1)")


def test_a_file_that_cannot_be_parsed_tells_nothing(tmp_path):
    assert read(tmp_path, "out +=\n", "add_").name == ""


def test_no_location_tells_nothing():
    assert written_at(None, "add_").name == ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("out += skip  # the bug", "out += skip"),
        ("x['#'] = 1", "x['#'] = 1"),
        ("x.add_(  # more below", "x.add_("),
        ("x.add_(", "x.add_("),
        ("x = 'open", "x = 'open"),
        ("", ""),
    ],
)
def test_the_comment_at_the_end_is_left_out(source, expected):
    assert without_comment(source) == expected
