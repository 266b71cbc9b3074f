"""Verbs: one name means one thing, and a wrong line is refused in words."""

import argparse

import pytest

from gradscope.cli import SUBCOMMANDS
from gradscope.inspect.debugging.prompt.line_mode import LineMode
from gradscope.inspect.debugging.prompt.prompt_verbs import (
    OF_THE_SHELL,
    VERBS,
    UsageError,
    find_verb,
    help_text,
    split_commands,
)


def test_every_name_belongs_to_one_verb():
    names = [name for verb in VERBS for name in verb.names]
    assert len(names) == len(set(names))
    assert {find_verb(f"{verb.name} 1" if verb.argument == "needed" else verb.name)[0] for verb in VERBS} == set(VERBS)


def test_every_verb_can_be_done():
    for verb in VERBS:
        assert callable(getattr(LineMode, "_do_" + verb.name.replace("-", "_")))


def test_the_stack_is_asked_for_by_the_debuggers_word():
    assert find_verb("backtrace")[0] is find_verb("where")[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stepp", "there is no command 'stepp'"),
        ("continue 3", "continue takes nothing, got '3'"),
        ("run-to", "usage: run-to NODE"),
        ("delete", "usage: delete NUMBER"),
        ("set", r"usage: set \[SLOT\] EXPRESSION"),
    ],
)
def test_wrong_lines(line, said):
    with pytest.raises(UsageError, match=said):
        find_verb(line)


def test_a_command_of_the_shell_is_told_as_one():
    root = argparse.ArgumentParser()
    commands = root.add_subparsers()
    for module in SUBCOMMANDS:
        module.add_parser(commands)
    verbs = {name for verb in VERBS for name in verb.names}
    assert set(commands.choices) - verbs == OF_THE_SHELL
    for line in ("doctor", "check train.py"):
        name = line.split()[0]
        with pytest.raises(
            UsageError, match=f"^{name} is no command here but one of the shell: gradscope {name} --help"
        ):
            find_verb(line)


def test_help_fits_a_terminal_and_names_every_verb():
    text = help_text()
    assert max(map(len, text.splitlines())) <= 80
    heads = [line.strip() for line in text.splitlines() if line.startswith("  ") and line[2] != " "]
    for verb in VERBS:
        assert any(head.startswith(f"{', '.join(verb.names)} {verb.usage}".rstrip()) for head in heads), verb.name
    assert len(heads) == len(VERBS)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_help_of_a_verb_has_all_its_words(verb):
    assert " ".join(help_text(verb).split()) == " ".join([", ".join(verb.names), verb.usage, verb.help]).replace(
        "  ", " "
    )


def test_split_commands():
    assert split_commands(" step;; print 'a;b' ;\nquit; ") == ["step", "print 'a;b'", "quit"]
    assert split_commands('p "it\'s; fine"; q') == ['p "it\'s; fine"', "q"]
    assert split_commands(" ; ") == []
