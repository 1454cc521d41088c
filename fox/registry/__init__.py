"""Names -> files -> running engines. `Registry` and what it keeps are imported on first use: `fox list` stays light."""

from typing import TYPE_CHECKING, Any

from fox.registry.catalog import Catalog, ModelEntry

if TYPE_CHECKING:
    from fox.registry.registry import Registry, RegistryOptions
    from fox.registry.resident import Resident, Terms

__all__ = ["Catalog", "ModelEntry", "Registry", "RegistryOptions", "Resident", "Terms"]

_LATER = {
    "Registry": "fox.registry.registry",
    "RegistryOptions": "fox.registry.registry",
    "Resident": "fox.registry.resident",
    "Terms": "fox.registry.resident",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(name)
