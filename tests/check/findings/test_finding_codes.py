import pytest

from gradscope.check import CODES, Sanitizer, Silences, check_sources, explain
from gradscope.check.suppression.code_selection import CodeSelection


@pytest.mark.parametrize("code", CODES)
def test_explanation_is_complete(code):
    text = explain(code.lower())
    entry = CODES[code]
    assert text.startswith(f"{code}: {entry.title} ({entry.severity})\n")
    assert entry.what in text
    assert entry.bad.splitlines()[0] in text
    assert entry.good.splitlines()[0] in text
    assert max(map(len, text.splitlines())) <= 88


def test_unknown_code():
    with pytest.raises(KeyError):
        explain("GS999")


def names(fw):
    """Return what the examples use without defining it."""
    w = fw.ones(3, requires_grad=True)
    (w * w).sum().backward()
    return {
        "gs": fw,
        "w": w,
        "lr": 0.1,
        "x": fw.ones(2, 3, requires_grad=True) * 2,
        "y": fw.zeros(2, 3),
        "skip": fw.ones(2, 3),
        "optimizer": fw.optim.SGD([w], lr=0.1),
        "model": lambda x: x * w * w,
        "criterion": lambda output, target: (output - target).sum(),
        "sequence": [fw.ones(3), fw.ones(3)],
        "hidden": fw.zeros(3),
        "layer": fw.nn.Linear(3, 3),
        "cell": lambda x, hidden: (x * w + hidden).tanh(),
    }


CASES = [
    pytest.param(code, framework, marks=pytest.mark.torch if framework == "PyTorch" else ())
    for code in CODES
    if CODES[code].needs
    for framework in ("gradscope", "PyTorch")
]


READ = [code for code in CODES if not CODES[code].needs]


@pytest.mark.parametrize("code", READ)
def test_of_what_is_read_the_bad_example_has_it_and_the_good_one_has_not(code, tmp_path):
    (tmp_path / "bad.py").write_text(CODES[code].bad)
    (tmp_path / "good.py").write_text(CODES[code].good)
    found = check_sources([str(tmp_path)]).findings
    assert [(finding.code, finding.primary.filename) for finding in found] == [(code, str(tmp_path / "bad.py"))]


@pytest.mark.parametrize("framework", ["gradscope", pytest.param("PyTorch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("code", READ)
def test_of_what_is_read_the_good_example_runs(code, framework):
    fw = pytest.importorskip("torch" if framework == "PyTorch" else "gradscope")
    scope = names(fw)
    with Sanitizer() as sanitizer:
        exec(CODES[code].good, scope)
    assert sanitizer.findings == []


@pytest.mark.parametrize(("code", "framework"), CASES)
def test_the_bad_example_has_it_and_the_good_one_has_not(code, framework):
    fw = pytest.importorskip("torch" if framework == "PyTorch" else "gradscope")
    for source, expected in ((CODES[code].bad, [code]), (CODES[code].good, [])):
        scope = names(fw)
        with Sanitizer(Silences(CodeSelection(["GS", code]))) as sanitizer:
            try:
                exec(source, scope)
            except RuntimeError:
                assert expected
        assert [f.code for f in sanitizer.findings] == expected
