"""A recording in a notebook."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import gradscope.inspect as gi


def recorded(fw, path, iterations):
    model = fw.nn.Linear(2, 1)
    with gi.record(path):
        for _ in range(iterations):
            loss = model(fw.ones(1, 2)).sum()
            loss.backward()
    return gi.open_recording(path)


@pytest.mark.parametrize(("iterations", "rows"), [(3, 3), (25, 20)])
def test_it_tells_what_it_holds(fw, tmp_path, iterations, rows):
    with recorded(fw, tmp_path / "run.gscope", iterations) as recording:
        page = ElementTree.fromstring(recording._repr_html_())
    assert f"{iterations} iterations, {iterations} backwards" in page.find("pre").text
    table = [[cell.text for cell in row.iter("td")] for row in page.find("table").iter("tr")][1:]
    assert [row[0] for row in table] == [str(number) for number in range(1, iterations + 1)][-rows:]
    titles = [title.text for title in page.iter() if title.tag.endswith("title")]
    assert any(title.startswith("weight, iteration") for title in titles)
    assert len([title for title in titles if title.startswith("bias")]) == iterations


def test_an_empty_one_says_so(tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        pass
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        page = ElementTree.fromstring(recording._repr_html_())
    assert "0 iterations" in page.find("pre").text
    assert page.find("table") is None
    assert page.find("p").text == "No gradient was recorded."


def test_a_backward_of_it_shows_its_nodes(fw, tmp_path):
    with recorded(fw, tmp_path / "run.gscope", 2) as recording:
        backward = recording.tasks()[-1]
        page, nodes = (ElementTree.fromstring(shown._repr_html_()) for shown in (backward, backward.nodes))
    assert page.find("pre").text.startswith("backward 2 of iteration 2, loss ")
    assert page.find("pre").text.endswith(", finished")
    shown = [[cell.text for cell in row.iter("td")][2] for row in page.iter("tr") if row.find("td") is not None]
    assert shown[0] == "SumBackward0"
    assert shown.count("AccumulateGrad") == 2
    assert [cell.text for cell in nodes.iter("td")] == [cell.text for cell in page.iter("td")]
