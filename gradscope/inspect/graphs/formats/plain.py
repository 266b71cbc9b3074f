"""Nodes and edges as numbers and text, for formats that know nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...records.records import Location, TensorSpec, TensorSummary
from ..quotient import incoming_norm, mark_of
from .picture import inner_text, specs_text

__all__ = ["amounts", "edge_scalars", "node_json", "node_scalars"]

_PLAIN = ("index", "name", "operator", "module", "parameter")


def amounts(data: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return how many nodes, parameters and bytes of saved tensors a node of a graph stands for.

    Parameters
    ----------
    data : mapping
        The attributes of a node, or of a group that nodes were folded into.
    """
    if "members" in data:
        return data["count"], data["parameters"], data["saved_bytes"]
    # A list is faster here than a generator, and graphs have a hundred thousand nodes.
    return 1, int(data["name"] == "AccumulateGrad"), sum([saved.nbytes for saved in data["saved"]])


def node_scalars(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes as numbers and text alone; those that are empty are left out.

    Parameters
    ----------
    data : mapping
        The node's attributes.
    """
    plain: dict[str, Any] = {name: data[name] for name in _PLAIN}
    # Sequence numbers go up to 2**64 - 1, which no integer type of GraphML holds.
    plain["sequence_nr"] = str(data["sequence_nr"])
    location = data["location"]
    if location is not None:
        plain |= {"file": location.filename, "line": location.lineno}
        plain |= {"function": location.function, "source": location.source}
    plain["outputs"] = specs_text(data["outputs"])
    plain["inputs"] = specs_text(data["inputs"])
    if "members" in data:
        plain |= {name: data[name] for name in ("kind", "count", "parameters")}
    else:
        plain["saved"] = ", ".join(saved.name for saved in data["saved"])
        plain["inside"] = "; ".join(map(inner_text, data.get("inside", ())))
    plain["saved_bytes"] = amounts(data)[2]
    plain["mark"] = mark_of(data)
    plain["state"] = data.get("state", "")
    norm = incoming_norm(data)
    if norm is not None:
        plain["gradient_norm"] = norm
    if data.get("seconds") is not None:
        plain["seconds"] = data["seconds"]
    return {name: value for name, value in plain.items() if value != ""}


def edge_scalars(data: Mapping[str, Any]) -> dict[str, int]:
    """Return an edge's attributes."""
    return {name: data[name] for name in ("output_nr", "input_nr", "count") if name in data}


def node_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes as JSON has them, with nothing left out.

    Parameters
    ----------
    data : mapping
        The node's attributes.

    Returns
    -------
    dict
        NaN and Inf, which JSON does not know, are text.
    """
    return {name: _json(value) for name, value in data.items()}


def _json(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, Location):
        return {name: getattr(value, name) for name in ("filename", "lineno", "function", "source")}
    if isinstance(value, (TensorSpec, TensorSummary)) or hasattr(value, "__dataclass_fields__"):
        return {name: _json(part) for name, part in asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _json(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_json(part) for part in value]
    return value
