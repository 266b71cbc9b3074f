from __future__ import annotations

import pytest

from gradscope_tui.app import GradscopeApp
from gradscope_tui.settings import Settings, read_settings, settings_files
from gradscope_tui.widgets.norm_columns import NormScale
from tests.tui.fake import FakeSession, play_with, text_of, until


def read(tmp_path, *texts):
    files = []
    for number, text in enumerate(texts):
        files.append(tmp_path / f"{number}.toml")
        files[-1].write_text(text)
    return read_settings(files)


def test_settings_of_the_directory_win_over_the_persons_own(tmp_path):
    settings, problems = read(
        tmp_path, 'theme = "nord"\n[keys]\nstep = "a"\nout = "u"', 'theme = "textual-light"\n[keys]\nstep = "ctrl+n, a"'
    )
    assert settings == Settings("textual-light", {"step": "ctrl+n, a", "out": "u"})
    assert problems == []


def test_columns_and_the_scale_of_norms_are_set(tmp_path):
    settings, problems = read(
        tmp_path, '[graph]\ncolumns = ["norm"]\n[norms]\nleast = 1e-12\nvanishing = 1e-5', "[norms]\nmost = 1\n"
    )
    assert problems == []
    assert settings.columns == ("norm",)
    assert settings.scale == NormScale(least=1e-12, most=1, vanishing=1e-5)


def test_the_protocol_of_pictures_is_set(tmp_path):
    assert read(tmp_path, 'graphics = "sixel"', "") == (Settings(graphics="sixel"), [])
    _, problems = read(tmp_path, 'theme = "nord"\ngraphics = "png"')
    assert [line.partition(":")[2] for line in problems] == ["2: graphics is one of auto, kitty, sixel, off, got 'png'"]


def test_the_mouse_can_be_left_to_the_terminal(tmp_path):
    settings, problems = read(tmp_path, "mouse = false", "")
    assert (settings, problems) == (Settings(mouse=False), [])
    assert not GradscopeApp(FakeSession(), settings_files=[tmp_path / "0.toml"]).mouse
    _, problems = read(tmp_path, 'mouse = "off"')
    assert [line.partition(":")[2] for line in problems] == ["1: mouse is true or false, got 'off'"]


def test_files_that_are_not_there_set_nothing(tmp_path):
    assert read_settings([tmp_path / "none.toml"]) == (Settings(), [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('a = 1\nthem = "nord"', ":2: there is no setting 'them'; did you mean 'theme'?"),
        ('theme = "nrod"', ":1: there is no theme 'nrod'; did you mean 'nord'?"),
        ('[keys]\nstep = "a"\nfindigs = "b"', ":3: there is no action 'findigs'; did you mean 'findings'?"),
        ("[keys]\nstep = 3", ":2: the keys of step are a string such as"),
        ('[keys]\nstep = "a,,b"', ":2: the keys of step are a string such as"),
        ('\n\nkeys = "n"', ":3: keys is a table"),
        ('[keys]\nstep = "c"', ":2: 'c' is a key of continue already"),
        ("[graph]\ncolums = []", ":2: there is no setting 'colums' of the graph; did you mean 'columns'?"),
        ('[graph]\ncolumns = ["nrom"]', ":2: there is no column 'nrom'; did you mean 'norm'?"),
        ('[graph]\ncolumns = "norm"', ':2: the columns are a list such as ["norm", "bar"], got \'norm\''),
        ("graph = 3", ":1: graph is a table"),
        ("norms = 3", ":1: norms is a table"),
        ("[norms]\nvanish = 1", ":2: there is no setting 'vanish' of norms; did you mean 'vanishing'?"),
        ("[norms]\nleast = 0", ":2: least is a norm above 0, such as 1e-7, got 0"),
        ("[norms]\nmost = inf", ":2: most is a norm above 0, such as 1e-7, got inf"),
        ("[norms]\nmost = true", ":2: most is a norm above 0, such as 1e-7, got True"),
        ("[norms]\nexploding = 1e-9", ":2: vanishing is less than exploding, got 1e-07 and 1e-09"),
        ("theme = ", "at end of document"),
        ("[keys", "Expected ']'"),
    ],
)
def test_what_means_nothing_is_told_with_its_file_and_line_and_nothing_of_the_file_is_used(tmp_path, text, said):
    settings, problems = read(tmp_path, text, '[keys]\nout = "u"')
    assert settings == Settings("", {"out": "u"})
    assert any(line.startswith(f"{tmp_path / '0.toml'}") and said in line for line in problems)


def test_settings_are_looked_for_where_xdg_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings_files()[0] == tmp_path / "gradscope" / "tui.toml"


def test_keys_theme_and_footer_are_as_they_are_set(tmp_path):
    path = tmp_path / "tui.toml"
    path.write_text('theme = "textual-light"\n[keys]\nstep = "a, f10"\n')

    async def scenario(app, pilot):
        await until(pilot, lambda: "a Next node" in text_of(app))
        assert app.theme == "textual-light"
        await pilot.press("a")
        await until(pilot, lambda: app.session.current == 1)
        await pilot.press("n")
        await pilot.pause()
        assert app.session.current == 1
        await pilot.press("?")
        await until(pilot, lambda: "a, f10" in text_of(app))

    play_with(scenario, FakeSession(), settings_files=[path])


def test_a_wrong_line_is_said_on_the_screen(tmp_path):
    path = tmp_path / "tui.toml"
    path.write_text('them = "nord"\n')

    async def scenario(app, pilot):
        await until(pilot, lambda: "tui.toml:1: there is no setting" in text_of(app).replace("\n", ""))

    play_with(scenario, FakeSession(), size=(200, 40), settings_files=[path])
