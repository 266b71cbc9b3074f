"""Random backward graphs for property tests, made without running anything."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gradscope.inspect import BackwardGraph, Location, SavedRecord, TensorSpec

NASTY = ["", "fc1", "layers.0", "layers.1", "layers.1.attn", "layers.2", 'a"b', "x<y>&z", "k\\n{}|`#;"]
OPERATORS = ["Mul", "Add", "Addmm", 'Odd"<&>', "Ünïcode×"]


def node(index: int, operator: str = "Mul", module: str = "", parameter: str = "", **more: Any) -> dict[str, Any]:
    """Return the attributes of a node."""
    leaf = bool(parameter)
    return {
        "index": index,
        "name": "AccumulateGrad" if leaf else f"{operator}Backward0",
        "operator": "AccumulateGrad" if leaf else operator,
        "sequence_nr": 2**64 - 1 if leaf else 1000 - index,
        "module": module,
        "parameter": parameter,
        "location": Location("train.py", index, "main", f"y = f(x) < {index} & 'a'"),
        "outputs": (TensorSpec((2, index), "float32", "cpu"),),
        "inputs": (),
        "saved": (SavedRecord("self", (2,), "float32", 8, 0, 0, "ok"),) if index % 2 else (),
        **more,
    }


def graph_from(edges: list[tuple[int, int]], datas: list[dict[str, Any]]) -> BackwardGraph:
    """Return the graph of nodes 0, 1, ... and of edges that lead to higher numbers."""
    made = BackwardGraph(parameters=[data["parameter"] for data in datas if data["parameter"]])
    made.add_nodes_from(enumerate(datas))
    counts = [0] * len(datas)
    for source, target in edges:
        made.add_edge(source, target, counts[source], output_nr=counts[source], input_nr=0)
        counts[source] += 1
    made.graph["roots"] = [key for key in made if not made.in_degree(key)]
    return made


@st.composite
def backward_graphs(draw: st.DrawFn, most: int = 10) -> BackwardGraph:
    """Draw a graph without cycles, with parallel edges, several roots, leaves and modules."""
    count = draw(st.integers(1, most))
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=2 * most)) if pairs else []
    sources = {a for a, _ in edges}
    datas = []
    for index in range(count):
        module = draw(st.sampled_from(NASTY))
        leaf = index not in sources and draw(st.booleans())
        datas.append(node(index, draw(st.sampled_from(OPERATORS)), module, f"p{index}.w" if leaf else ""))
    return graph_from(edges, datas)
