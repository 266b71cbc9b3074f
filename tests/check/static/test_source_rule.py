import re

import pytest

from gradscope.check import CODES
from gradscope.check.static.source_rule import SourceRule
from gradscope.check.static.statements import SourceText


def test_a_rule_concerns_files_with_one_of_its_words_and_all_its_patterns():
    class Wants(SourceRule):
        words = ("one", "uno")
        patterns = re.compile("tw[o]"), re.compile("th")

    assert [Wants().concerns(text) for text in ("two uno three", "two three", "one three")] == [True, False, False]
    with pytest.raises(NotImplementedError):
        Wants().look(SourceText("a.py", ""))


def test_rules_that_look_at_sources_are_among_the_others():
    looking = [code for code, rule in CODES.items() if isinstance(rule, SourceRule)]
    assert looking == ["GS101", "GS103", "GS111", "GS201", "GS202", "GS203", "GS204", "GS205", "GS206"]
