"""Names -> files -> running engines. The engine room is imported when the first registry is made: `fox list` stays light."""

from typing import TYPE_CHECKING, Any

from fox.registry.catalog import Catalog, ModelEntry

if TYPE_CHECKING:
    from fox.registry.registry import Registry

__all__ = ["Catalog", "ModelEntry", "Registry"]


def __getattr__(name: str) -> Any:
    if name == "Registry":
        from fox.registry.registry import Registry

        return Registry
    raise AttributeError(name)
