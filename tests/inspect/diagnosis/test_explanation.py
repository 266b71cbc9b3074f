"""What a prompt shows of an answer."""

import sys
from base64 import b64decode
from xml.etree import ElementTree

import pytest

import gradscope.inspect as gi
from gradscope.inspect.output.terminal_text import printable

QUESTIONS = {
    "why_no_grad": lambda model, loss: gi.why_no_grad(model, loss),
    "why_no_grad of one": lambda model, loss: gi.why_no_grad(model.bias, loss),
    "memory": lambda model, loss: gi.memory(loss),
    "gradient_flow": lambda model, loss: gi.gradient_flow(model),
    "nan_origin": lambda model, loss: gi.nan_origin(loss),
    "second_backward": lambda model, loss: gi.second_backward(loss),
    "aliasing": lambda model, loss: gi.aliasing(model),
    "growth": lambda model, loss: gi.growth().result,
    "updates": lambda model, loss: gi.updates().result,
    "leaks": lambda model, loss: _leaks(),
    "doctor": lambda model, loss: gi.Doctor().diagnosis,
    "graph_statistics": lambda model, loss: gi.graph_statistics(gi.graph(loss)),
    "graph_difference": lambda model, loss: gi.graph_difference(gi.graph(loss), gi.graph(loss)),
}

EXPLANATIONS = {name: ask for name, ask in QUESTIONS.items() if not name.startswith("graph_")}


def _leaks():
    with gi.leaks() as watch:
        pass
    return watch.result


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_prompt_shows_the_text(fw, ask):
    model = fw.nn.Linear(2, 1)
    answer = ask(model, model(fw.ones(1, 2)).sum())
    assert repr(answer) == str(answer)
    assert type(answer).__name__ not in repr(answer)


@pytest.mark.parametrize("ask", EXPLANATIONS.values(), ids=EXPLANATIONS)
def test_a_notebook_shows_a_table_and_the_text(fw, ask):
    model = fw.nn.Linear(2, 1)
    answer = ask(model, model(fw.ones(1, 2)).sum())
    page = ElementTree.fromstring(answer._repr_html_())
    cells = [cell.text or "" for cell in page.iter("td")]
    assert cells == [printable(str(cell)) for row in answer._rows() for cell in row]
    assert page.find("pre").text == printable(str(answer))


PLOTS = ("gradient_flow", "memory", "growth")


@pytest.mark.parametrize("name", PLOTS)
def test_a_notebook_shows_a_plot_where_there_is_one(fw, name):
    pytest.importorskip("matplotlib")
    model = fw.nn.Linear(2, 1)
    loss = model(fw.ones(1, 2)).pow(2).sum()
    with gi.growth() as watch:
        loss.backward(retain_graph=True)
    answer = watch.result if name == "growth" else EXPLANATIONS[name](model, loss)
    picture = ElementTree.fromstring(answer._repr_html_()).find("img")
    assert picture.attrib["alt"] == answer._title()
    assert b"<svg" in b64decode(picture.attrib["src"].partition(",")[2])


@pytest.mark.parametrize("name", PLOTS)
def test_without_matplotlib_there_is_a_table_alone(fw, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    model = fw.nn.Linear(2, 1)
    page = ElementTree.fromstring(EXPLANATIONS[name](model, model(fw.ones(1, 2)).pow(2).sum())._repr_html_())
    assert page.find("img") is None
    assert page.find("pre") is not None


def test_a_name_is_no_markup_in_a_notebook(fw):
    leaf = fw.ones(1, requires_grad=True)
    leaf.sum().backward()
    flow = gi.gradient_flow([("<script>", leaf)])
    assert "&lt;script&gt;" in flow._repr_html_()
    assert "<script>" not in flow._repr_html_()


def test_a_prompt_shows_where_a_debugger_stands(fw):
    debugger = gi.debug((fw.ones(2, requires_grad=True) * 2).sum())
    assert repr(debugger) == "<Debugger: paused before node 0 of 3, SumBackward0>"
    debugger.cont()
    assert repr(debugger) == "<Debugger: finished>"


def test_a_prompt_shows_the_size_of_a_graph(fw):
    assert repr(gi.graph(fw.ones(2, requires_grad=True).exp())) == "<BackwardGraph with 2 nodes and 1 edges>"
