import re

import pytest

from gradscope.check import Settings, read_settings


def read(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    return read_settings(str(tmp_path))


def test_without_a_table_all_is_as_it_is_by_default(tmp_path):
    assert read(tmp_path, "[project]\nname = 'x'\n") == Settings()


def test_the_nearest_file_above_counts_and_paths_are_relative_to_it(tmp_path):
    text = """
    [tool.gradscope.check]
    select = ["GS1"]
    ignore = ["GS107"]
    format = "concise"
    output-file = "report.txt"
    baseline = "known.json"
    suppressions = "third_party.txt"
    exit-zero = true
    """
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(text)
    assert read_settings(str(tmp_path / "src" / "deep")) == Settings(
        select=("GS1",),
        ignore=("GS107",),
        format="concise",
        output_file="report.txt",
        baseline=str(tmp_path / "known.json"),
        suppressions=str(tmp_path / "third_party.txt"),
        exit_zero=True,
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("selct = ['GS101']", "no setting 'selct': did you mean 'select'?"),
        ("output_file = 'x'", "no setting 'output_file': did you mean 'output-file'?"),
        ("select = 'GS101'", "select wants a list of texts, got 'GS101'"),
        ("first = true\nkeep-going = true", "first and keep-going contradict each other"),
        ("exit-zero = 1", "exit-zero wants true or false, got 1"),
        ("baseline = true", "baseline wants a text, got True"),
        ("ignore = ['GS1O3']", "no code 'GS1O3': did you mean 'GS103'?"),
        ("format = 'yaml'", "there is no format 'yaml'; there are text, concise"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_file(tmp_path, line, message):
    told = re.escape(f"{tmp_path / 'pyproject.toml'}: [tool.gradscope.check]: {message}")
    with pytest.raises(ValueError, match=told):
        read(tmp_path, f"[tool.gradscope.check]\n{line}\n")


@pytest.mark.parametrize(
    "text", ["[tool", "[tool]\ngradscope = 3\n", "[tool.gradscope.chek]\nfirst = true\n", f"x = {'[' * 5000}"]
)
def test_a_file_that_cannot_be_read_is_told(tmp_path, text):
    with pytest.raises(ValueError, match=r"pyproject\.toml: "):
        read(tmp_path, text)


def test_a_file_that_windows_has_marked_is_read(tmp_path):
    assert read(tmp_path, '\ufeff[tool.gradscope.check]\nbaseline = ""\nfirst = true\n') == Settings(first=True)
