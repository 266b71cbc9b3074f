from __future__ import annotations

import inspect
from pathlib import Path

from gradscope.inspect.debugging.prompt.prompt_verbs import find_verb
from gradscope_tui.actions import ACTIONS, bindings, key_tables
from gradscope_tui.app import GradscopeApp
from gradscope_tui.command_line import CommandLine
from gradscope_tui.navigation import Navigation
from gradscope_tui.pane_layout import PaneLayout
from gradscope_tui.pane_verbs import PaneVerbs
from gradscope_tui.run_verbs import RunVerbs


def test_every_action_is_answered_by_the_app():
    for action in ACTIONS:
        name = action.id.partition("(")[0]
        assert callable(getattr(GradscopeApp, f"action_{name}")), action.id


def test_no_key_does_two_things():
    keys = [key for action in ACTIONS for key in action.keys]
    assert sorted(keys) == sorted(set(keys))


def test_every_verb_is_one_of_line_mode():
    for action in ACTIONS:
        if action.verb:
            assert find_verb(
                f"{action.verb} 1" if action.verb in ("run-to", "delete", "set", "what-if") else action.verb
            )


def test_every_binding_has_the_id_of_its_action_so_that_keys_can_be_remapped():
    assert [(binding.id, binding.action) for binding in bindings()] == [(action.id, action.id) for action in ACTIONS]


def test_every_action_says_what_it_does():
    assert all(action.help and action.label and action.shown and action.group for action in ACTIONS)
    assert all(inspect.getdoc(getattr(GradscopeApp, f"action_{a.id.partition('(')[0]}")) for a in ACTIONS)


def test_the_documentation_lists_every_key():
    page = (Path(__file__).parents[2] / "docs" / "tui.md").read_text(encoding="utf-8")
    assert f"\n{key_tables()}\n" in page


def test_every_action_is_answered_by_one_part_of_the_app():
    parts = (PaneLayout, RunVerbs, Navigation, PaneVerbs, CommandLine)
    answers = [name for part in parts for name in vars(part) if name.startswith("action_")]
    assert sorted(answers) == sorted(set(answers))
    assert set(answers) <= {f"action_{action.id.partition('(')[0]}" for action in ACTIONS} | {"action_goto"}
