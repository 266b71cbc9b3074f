import pytest

from gradscope.check import CODES
from gradscope.check.suppression.code_selection import CodeSelection, codes_of


def selected(select=(), ignore=()):
    selection = CodeSelection(select, ignore)
    return [code for code in CODES if code in selection]


ALWAYS = [code for code, rule in CODES.items() if not rule.opt_in]


def test_all_codes_by_default_but_those_that_are_opt_in():
    assert selected() == ALWAYS == [code for code in CODES if code != "GS112"]


def test_the_beginning_of_a_code_stands_for_all_of_them():
    assert selected(["GS"]) == ALWAYS
    assert selected(ignore=["gs1"]) == [code for code in CODES if code.startswith("GS2")]


def test_the_longer_word_wins_whichever_list_it_is_in():
    assert selected(["GS", "GS103"], ["GS10"]) == [code for code in ALWAYS if code == "GS103" or code[:4] != "GS10"]
    assert "GS103" not in selected(["GS10"], ["GS103"])


def test_a_code_that_is_opt_in_is_selected_by_its_whole_name_alone():
    assert "GS112" not in selected(["GS11"])
    assert selected(["gs112"]) == ["GS112"]
    assert selected(["GS", "GS112"]) == list(CODES)
    assert selected(["GS", "GS112"], ["GS112"]) == ALWAYS


def test_of_two_words_that_are_equal_ignore_wins():
    assert selected(["GS103"], ["GS103"]) == []


@pytest.mark.parametrize(("word", "hint"), [("GS1O3", "did you mean 'GS103'"), ("", "there are GS101, GS102")])
def test_an_unknown_code_is_refused(word, hint):
    with pytest.raises(ValueError, match=f"no code '{word}': {hint}"):
        codes_of([word])
