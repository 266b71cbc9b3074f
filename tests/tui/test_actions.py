from __future__ import annotations

import inspect

from textual.keys import _character_to_key

from gradscope.inspect.verbs import find_verb
from gradscope_tui.actions import ACTIONS, bindings
from gradscope_tui.app import GradscopeApp


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
            assert find_verb(f"{action.verb} 1" if action.verb in ("run-to", "delete", "set") else action.verb)


def test_bindings_name_keys_as_textual_does_and_can_be_remapped():
    for action, binding in zip(ACTIONS, bindings()):
        assert binding.id == binding.action == action.id
        for key in binding.key.split(","):
            assert len(key) > 1 or _character_to_key(key) == key or key.isupper()


def test_every_action_says_what_it_does():
    assert all(action.help and action.label and action.shown and action.group for action in ACTIONS)
    assert all(inspect.getdoc(getattr(GradscopeApp, f"action_{a.id.partition('(')[0]}")) for a in ACTIONS)
