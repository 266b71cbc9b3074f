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
    at_leaves_alone : collection of str
        Which of its methods ``node_entered`` and ``node_exited`` do something at leaves alone.

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

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "looks_into" in vars(cls):
            cls.looks_into = guarded(cls.looks_into)  # type: ignore[method-assign]

    def looks_into(self, task: Any) -> bool:
        """Whether nodes that are no leaves matter to it in a backward of which ``task_started`` has told."""
        return True
