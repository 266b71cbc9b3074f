import pytest

from gradscope.check import Site
from gradscope.inspect import Location
from tests.check.reports import finding


def test_findings_are_frozen_and_know_their_places():
    found = finding()
    assert (found.primary, found.written, found.saved, found.read) == (
        found.sites[0].location,
        found.sites[0].location,
        found.sites[1].location,
        None,
    )
    assert found.again().occurrences == 2
    assert found.again().key == found.key
    with pytest.raises(AttributeError):
        found.code = "GS102"


def test_findings_without_places_differ_by_their_message():
    assert finding(sites=()).key != finding(sites=(), message="another").key


def test_findings_of_one_write_are_joined():
    other = finding(sites=(finding().sites[0],), node="MulBackward0")
    joined = finding().joined(other).joined(other).joined(finding())
    assert finding().cause == other.cause
    assert (joined.occurrences, [(also.node, also.occurrences) for also in joined.also]) == (2, [("MulBackward0", 2)])


def test_what_happened_at_two_lines_of_a_library_is_not_one_finding():
    own = Location("train.py", 3, "main", "trainer.fit()")

    def at(line):
        frames = (Location("/v/site-packages/trainer.py", line, "fit", "x.add_(1)"),)
        return finding(sites=(Site("written", own, "written here", frames),))

    assert at(8).key != at(9).key
    assert at(8).cause != at(9).cause
