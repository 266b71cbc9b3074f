"""All files of a folder are found, and nothing below it."""

import pytest

from gradscope.inspect.discovery import import_all


def test_files_but_not_folders():
    names = [module.__name__ for module in import_all("gradscope.inspect.diagnosis")]
    assert names == sorted(names)
    assert "gradscope.inspect.diagnosis.doctor" in names
    assert "gradscope.inspect.diagnosis.nan" not in names


def test_an_error_in_a_file_is_not_hidden(tmp_path, monkeypatch):
    folder = tmp_path / "folder_of_rules"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "broken.py").write_text("import nothing_of_the_sort")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="nothing_of_the_sort"):
        import_all("folder_of_rules")
