"""GET /api/tags and /api/ps: what is on this machine, and what is in memory."""

from __future__ import annotations

import math
from typing import Any

from fox.api.ollama.clock import NS, stamp
from fox.api.ollama.facts import Facts, Shelf
from fox.registry import Catalog, Registry, Resident

FOREVER_S = 100 * 365 * 86400  # more than 20 years ahead reads as "Forever"


def tags(catalog: Catalog, shelf: Shelf) -> dict[str, Any]:
    """The newest first."""
    entries = sorted(catalog.entries(), key=lambda entry: entry.modified_at, reverse=True)
    return {"models": [shelf.of(entry).listed for entry in entries]}


def running(registry: Registry, shelf: Shelf) -> dict[str, Any]:
    """The one that stays longest first."""
    residents = sorted(registry.residents(), key=lambda one: one.expires_at, reverse=True)
    return {"models": [_resident(one, shelf.of(one.entry)) for one in residents]}


def _resident(resident: Resident, facts: Facts) -> dict[str, Any]:
    expires_at, now = resident.expires_at, resident.used_at
    return {
        "name": facts.entry.tagged,
        "model": facts.entry.tagged,
        "size": resident.engine.info.weights_bytes,
        "digest": facts.entry.digest,
        "details": facts.details,
        "expires_at": stamp(int((now + FOREVER_S if math.isinf(expires_at) else expires_at) * NS)),
        "size_vram": 0,
        "context_length": resident.engine.info.context_tokens,
    }
