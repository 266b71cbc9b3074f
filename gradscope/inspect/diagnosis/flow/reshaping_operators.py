"""The operators that only give elements another place; a front that shows norms needs to know them, and no more."""

__all__ = ["RESHAPING"]

RESHAPING = frozenset(
    {"Alias", "Clone", "Expand", "Permute", "Reshape", "ReshapeAlias", "Select", "Slice", "Squeeze", "T", "ToCopy"}
    | {"Transpose", "Unsqueeze", "UnsafeView", "View"}
)
"""Operators whose results are elements of their input, by what their nodes are called."""
