"""What the doctor's watches are: observers whose own errors do not reach the program."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from ..adapters.guarded_observer import GuardedObserver, guarded

__all__ = ["Watch", "guarded"]


class Watch(GuardedObserver):
    """An observer that hears no more once it has failed, while the program goes on.

    Attributes
    ----------
    at_leaves_alone, at_functions_alone : collection of str
        Which of its methods ``node_entered`` and ``node_exited`` do something at leaves, or at the nodes of custom
        Functions, alone.

    See Also
    --------
    guarded : for what else calls a watch, such as the hooks of an optimizer.

    Examples
    --------
    >>> class Names(Watch):
    ...     def __init__(self):
    ...         self.seen = []
    ...
    ...     def module_entered(self, module):
    ...         self.seen.append(type(module).__name__)
    >>> watch = Names()
    >>> watch.module_entered(3)
    >>> watch.seen, watch.fault
    (['int'], '')
    """

    at_leaves_alone: ClassVar[Collection[str]] = ()
    at_functions_alone: ClassVar[Collection[str]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("looks_into", "in_backward"):
            if name in vars(cls):
                setattr(cls, name, guarded(vars(cls)[name]))

    def looks_into(self, task: Any) -> bool:
        """Whether nodes that are no leaves matter to it in a backward of which ``task_started`` has told."""
        return True

    def in_backward(self, task: Any) -> Any:
        """Return what has the methods ``node_entered`` and ``node_exited`` for that backward.

        That is the watch, or what it has made for the backward and need not look up at each node.
        """
        return self
