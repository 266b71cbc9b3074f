"""The runtime's own exception classes: each is also the class PyTorch raises for the same reason."""

from __future__ import annotations

from typing import Any

__all__ = ["InplaceError", "SavedTensorFreedError", "SavedTensorModifiedError"]


class SavedTensorModifiedError(RuntimeError):
    """A tensor saved for backward has been written in place since.

    Attributes
    ----------
    node : Node
        The node that needs the tensor.
    operator : str
        The name of that node.
    saved_name : str
        Under which name the node saved it (``self``, ``result``, ...).
    producer : str or None
        The name of the node that computed the tensor, None for a leaf.
    saved_at : CallSite or None
        Where the node was recorded, when call sites were recorded.
    writes : list of VersionBumped
        The writes since, when they were recorded.

    See Also
    --------
    SavedTensorFreedError, InplaceError, check.Sanitizer

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> y = x.exp()
    >>> _ = y.add_(1)
    >>> try:
    ...     y.sum().backward()
    ... except gs.SavedTensorModifiedError as error:
    ...     print(error.saved_name, error.saved_version, error.current_version)
    result 0 1
    """

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.node = facts["node"]
        self.operator: str = facts["operator"]
        self.saved_name: str = facts["saved_name"]
        self.shape: tuple[int, ...] = facts["shape"]
        self.dtype = facts["dtype"]
        self.producer: str | None = facts["producer"]
        self.saved_version: int = facts["saved_version"]
        self.current_version: int = facts["current_version"]
        self.saved_at = facts["saved_at"]
        self.writes: list[Any] = facts["writes"]


class SavedTensorFreedError(RuntimeError):
    """A saved tensor was asked for after its node had run and freed it.

    See Also
    --------
    SavedTensorModifiedError, autograd.backward

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> y = x.exp().sum()
    >>> y.backward()
    >>> try:
    ...     y.backward()
    ... except gs.SavedTensorFreedError as error:
    ...     print(type(error).__name__)
    SavedTensorFreedError
    """

    def __init__(self, node: Any) -> None:
        super().__init__(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
            f"autograd.grad(). The node is {node.name()}.\n"
            "Specify retain_graph=True if you need to backward through the graph a second time or if you need to "
            "access saved tensors after calling backward."
        )
        self.node = node


class InplaceError(RuntimeError):
    """An in-place write that autograd does not allow, refused before (or, for a stale view, found after) it happened.

    Attributes
    ----------
    reason : str
        ``'leaf'``, ``'view of leaf'``, ``'inference tensor'``, ``'overlap'`` (several elements lie at one address), or
        what is special about the view that was written:
        ``'multi'``, ``'no_grad'``, ``'custom'``, ``'inference'``.
    view_operator : str
        The operator that made the view; empty when it is none.
    view_site : CallSite or None
        Where the view was made, when call sites were recorded.
    writes : list of VersionBumped
        For a stale view: the recorded writes, through another alias, that made it so.
    stale_memory : int or None
        For a stale view: the address of the memory that was written.

    See Also
    --------
    SavedTensorModifiedError, check.Sanitizer

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> try:
    ...     x.add_(1)
    ... except gs.InplaceError as error:
    ...     print(error.reason)
    leaf
    """

    def __init__(self, message: str, reason: str, tensor: Any, view: Any = None, writes: Any = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.shape: tuple[int, ...] = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.view_operator: str = view.operator if view is not None else ""
        self.view_site = view.site if view is not None else None
        self.writes: list[Any] = list(writes or ())
        self.stale_memory: int | None = None if writes is None else tensor.untyped_storage().data_ptr()
