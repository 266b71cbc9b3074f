from ..inspect.conftest import fw

__all__ = ["fw"]
