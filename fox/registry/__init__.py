"""Names -> files -> running engines. `Registry` is imported on first use, so that `fox list` stays light."""

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
