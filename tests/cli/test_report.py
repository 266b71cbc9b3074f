"""``gradscope report``."""

import stat

from gradscope.cli import main
from tests.inspect.recording.programs import recorded


def test_a_page(tmp_path, capsys):
    recorded(tmp_path / "run.gscope").close()
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "run.gscope"), "-o", str(page), "--title", "A run"]) == 0
    assert capsys.readouterr().out == f"wrote {page}\n"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "A run: its gradients" in text


def test_what_cannot_be_read_or_written(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none")]) == 2
    recorded(tmp_path / "run.gscope").close()
    assert main(["report", str(tmp_path / "run.gscope"), "-o", str(tmp_path / "no" / "page.html")]) == 2
    assert "cannot write" in capsys.readouterr().err
