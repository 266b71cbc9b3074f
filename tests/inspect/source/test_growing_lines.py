"""Where in a program a variable grows."""

from gradscope.inspect.records.records import Location
from gradscope.inspect.source.growing_lines import growing_line


def test_lines_where_a_variable_grows(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("losses = []\nloss = f()\nlosses.append(loss)\ntotal += loss\nself.log['x'] = loss\n")
    near = Location(str(file), 2, "", "loss = f()")
    assert [growing_line(name, near).lineno for name in ("losses", "total", "log")] == [3, 4, 5]
    assert growing_line("other", near) is None
    file.with_name("broken.py").write_text("def (:\n")
    assert growing_line("x", Location(str(file.with_name("broken.py")), 1, "", "")) is None
