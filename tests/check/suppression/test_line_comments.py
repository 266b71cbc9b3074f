import pytest

from gradscope.check.suppression.line_comments import LineComments


@pytest.fixture
def comments_in(tmp_path):
    """Return the file of a source, and whether its comments silence a code on a line."""

    def of(source):
        path = tmp_path / "program.py"
        path.write_text(source)
        comments = LineComments()
        return (
            lambda line, code="GS101": comments.silence(str(path), line, code),
            lambda: [(notice.line, notice.text) for notice in comments.notices(str(path))],
        )

    return of


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# gradscope: ignore[GS101]", True),
        ("#gradscope:ignore[GS101]", True),
        ("# because  # gradscope: ignore[GS105, GS101]", True),
        ("# gradscope: ignore[GS102]", False),
        ("# gradscope: ignore[]", False),
        ("# gradscope: ignore", False),
        ("# gradscope: ignored[GS101]", False),
        ("'# gradscope: ignore[GS101]'", False),
        ("", False),
    ],
)
def test_the_code_has_to_be_named_in_a_comment(comments_in, comment, expected):
    silenced, _ = comments_in(f"x.add_(1); {comment}\n")
    assert silenced(1) is expected


CALL = """\
x = f(
    a,
    b,
)  # gradscope: ignore[GS101]
y = 1
"""


def test_a_comment_counts_for_all_lines_of_its_statement(comments_in):
    silenced, _ = comments_in(CALL)
    assert [silenced(line) for line in range(1, 6)] == [True, True, True, True, False]


def test_a_comment_at_a_block_does_not_count_for_its_body(comments_in):
    silenced, _ = comments_in("with f(  # gradscope: ignore[GS101]\n    x.exp_()\n):\n    x.add_(1)\n")
    assert [silenced(line) for line in range(1, 5)] == [True, True, True, False]


def test_a_file_that_cannot_be_parsed_has_comments_by_line(comments_in):
    silenced, _ = comments_in("x.add_(1)  # gradscope: ignore[GS101]\nout +=\n")
    assert [silenced(1), silenced(2)] == [True, False]


def test_a_comment_without_a_code_is_warned_of(comments_in):
    _, notices = comments_in("x.add_(1)  # gradscope: ignore\n")
    assert notices() == [(1, "`# gradscope: ignore` names no code, and silences nothing: write ignore[CODE]")]


def test_an_unknown_code_is_warned_of_and_one_of_the_doctors_is_not(comments_in):
    _, notices = comments_in("x.add_(1)  # gradscope: ignore[GS1O3]\ny = 1  # gradscope: ignore[D303]\n")
    assert notices() == [(1, "ignore[GS1O3]: no such code; did you mean 'GS103'?")]


def test_where_none_is_near_the_codes_of_check_are_told_alone(comments_in):
    _, notices = comments_in("x.add_(1)  # gradscope: ignore[GS9000]\n")
    ((_, told),) = notices()
    assert (" GS101, " in told, "D3" in told) == (True, False)


def test_a_code_that_has_silenced_nothing_is_warned_of(comments_in):
    silenced, notices = comments_in("x.add_(1)  # gradscope: ignore[GS101, GS106]\n")
    assert silenced(1, "GS106")
    assert notices() == [(1, "ignore[GS101] has silenced nothing in this run")]
