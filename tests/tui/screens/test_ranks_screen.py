"""The ranks of a program, side by side, of which one is chosen."""

from __future__ import annotations

from dataclasses import replace

from gradscope.inspect.ranks.rank_comparison import RankComparison, RankRow
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.screens.comparison_screen import ComparisonScreen
from gradscope_tui.screens.ranks_screen import RanksScreen
from tests.tui.fake import FakeSession, chain, play, text_of, until

ROWS = (
    RankRow(0, 0.5, "rank 0: paused before node 1: MulBackward0, backward 1"),
    RankRow(1, None, "rank 1: runs; it waits in all_reduce", '  File "train.py", line 40, in <module>\n'),
)


class SessionOfRanks(FakeSession):
    """A session of two ranks."""

    rank = 0

    def compare_ranks(self):
        differs = ("rank 1: its graph differs; nodes of its own: 1, first ExpBackward0",)
        return RankComparison("node 1 of 4: MulBackward0, on 2 ranks", self.rank, ROWS, differs)

    def choose(self, rank):
        self.rank = rank


def test_the_ranks_stand_side_by_side_and_one_is_chosen():
    async def scenario(app, pilot):
        await until(pilot, lambda: "rank 0" in text_of(app))
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, RanksScreen) and "node 1 of 4" in text_of(app))
        shown = text_of(app)
        assert "▶ 5.0e-01 █" in shown
        assert "rank 1: runs; it waits in all_reduce" in shown
        assert "rank 1: its graph differs" in shown
        assert 'File "train.py", line 40' not in shown
        await pilot.press("j")
        await until(pilot, lambda: 'File "train.py", line 40' in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.session.rank == 1 and "rank 1 is looked at" in text_of(app))
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, RanksScreen))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, RanksScreen))

    play(scenario, SessionOfRanks())


def test_a_rank_is_put_beside_the_one_that_is_looked_at():
    nodes = [replace(node, norm=1.0) for node in chain()]
    theirs = [*nodes[:4], replace(nodes[4], norm=8.0), *nodes[5:]]
    session = SessionOfRanks(nodes)
    session.kept = {1: nodes}
    session.rank_records = lambda rank, number: theirs if (rank, number) == (1, 1) else []

    async def scenario(app, pilot):
        await until(pilot, lambda: "rank 0" in text_of(app))
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, RanksScreen))
        await pilot.press("v")
        await until(pilot, lambda: "move to another rank" in text_of(app))
        await pilot.press("j", "v")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        await until(pilot, lambda: "rank 0 and rank 1" in text_of(app))
        assert [line.split()[1:3] for line in text_of(app).split("\n") if "▶" in line and "×8" in line] == [["▶", "4"]]
        await pilot.press("enter")
        await until(pilot, lambda: app.query_one(GraphPane).index == 4)

    play(scenario, session, size=(120, 30))


def test_a_program_without_ranks_has_no_such_screen():
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        await app.run_action("ranks")
        await until(pilot, lambda: "the program has no ranks" in text_of(app))

    play(scenario)
