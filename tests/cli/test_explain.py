"""``gradscope explain``."""

import pytest

from gradscope.cli import main


def explain(capsys, *words):
    status = main(["explain", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_list(capsys):
    status, out, err = explain(capsys)
    assert (status, err) == (0, "")
    assert "  GS101            saved tensor modified in place\n" in out
    assert "  double-where     where() and the branch that was not taken\n" in out


@pytest.mark.parametrize("word", ["GS104", "gs104"])
def test_a_code(capsys, word):
    status, out, _ = explain(capsys, word)
    assert status == 0
    assert out.startswith("GS104: backward through a freed graph (error)\n")


@pytest.mark.parametrize("words", [["nan"], ["NaN"], ["inf"]])
def test_a_topic(capsys, words):
    status, out, _ = explain(capsys, *words)
    assert status == 0
    assert out.startswith("nan: NaN and Inf: who makes them, who passes them on\n")
    assert "\nInstead of\n" in out
    assert "\nTool: gi.nan_origin(loss)" in out


@pytest.mark.parametrize(
    ("message", "topic"),
    [
        (
            "RuntimeError: one of the variables has been modified by an inplace operation: [torch.FloatTensor",
            "inplace",
        ),
        ("element 0 of tensors does not require grad and does not have a grad_fn", "no-grad"),
        ("AttributeError: 'NoneType' object has no attribute 'data'", "no-grad"),
        ("Trying to backward through the graph a second time (or directly access saved tensors", "second-backward"),
        ("a leaf Variable that requires grad is being used in an in-place operation.", "leaf"),
        ("function CubeBackward returned an incorrect number of gradients (expected 2, got 1)", "custom-function"),
        ("Function 'SqrtBackward0' returned nan values in its 0th output.", "nan"),
    ],
)
def test_an_error(capsys, message, topic):
    status, out, _ = explain(capsys, *message.split())
    assert status == 0
    assert out.startswith(f"{topic}: ")


@pytest.mark.parametrize(
    "words", [["version-counter"], ["version", "counter"], ["version_counter"], ["version counter"]]
)
def test_a_topic_of_two_words(capsys, words):
    assert explain(capsys, *words)[1].startswith("version-counter:")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("memroy", "did you mean memory?"),
        ("lef", "did you mean leaf?"),
        ("GS1O3", "did you mean GS103"),
        ("xyzzy", "`gradscope explain` lists what there is"),
    ],
)
def test_an_unknown_word(capsys, word, hint):
    status, out, err = explain(capsys, word)
    assert (status, out) == (2, "")
    assert err.startswith(f"gradscope explain: no code or topic '{word}'; {hint}")
