from __future__ import annotations

from gradscope.cli import main


def test_without_a_terminal_there_is_no_tour(capsys, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert main(["tour"]) == 2
    assert capsys.readouterr().err == "gradscope tour: the tour needs a terminal that moves its cursor\n"
