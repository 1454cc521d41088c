"""GET /props and /slots, and POST /v1/cancel/{id}: what a model is, what it is at, and an end to that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from starlette.responses import Response

from fox import __version__
from fox.api.json_text import json_response
from fox.engine import Engine
from fox.errors import RequestNotFound
from fox.generation import Sampling

UNLIMITED = -1
SAMPLING = Sampling()


async def props(engine: Engine) -> Response:
    """llama.cpp's description of a server, of this engine."""
    info = engine.info
    params = {name: getattr(SAMPLING, name) for name in SAMPLING.__struct_fields__ if name != "logit_bias"}
    settings = {"n_ctx": info.context_tokens, "params": {**params, "seed": UNLIMITED, "n_predict": UNLIMITED}}
    path = engine.spec.path
    fields = {
        "default_generation_settings": settings,
        "total_slots": info.parallel,
        "model_alias": engine.name,
        "model_path": "" if path is None else path.name,
        "chat_template": info.chat_template or "",
        "bos_token": info.bos,
        "eos_token": info.eos,
        "modalities": {"vision": False, "audio": False},
        "build_info": f"fox {__version__}",
    }
    return json_response(fields)


def slots(engines: Iterable[Engine]) -> Response:
    """A row for each sequence that can be decoded at once. Blocks are those of the whole engine: sequences share
    them."""
    return json_response([row for engine in engines for row in _rows(engine)])


def cancel(engines: Iterable[Engine], id_: str) -> Response:
    """All the answers to one request. Raises RequestNotFound where none is being made."""
    cancelled = [engine.cancel(own) for engine in engines for own in engine.open_ids if _is_of(own, id_)]
    if not any(cancelled):
        raise RequestNotFound(id_)
    return json_response({"id": id_, "object": "cancellation", "cancelled": True})


def _rows(engine: Engine) -> Iterator[dict[str, Any]]:
    stats, info = engine.stats, engine.info
    busy = [*engine.open_ids][: info.parallel]
    for at in range(info.parallel):
        yield {
            "id": at,
            "model": engine.name,
            "n_ctx": info.context_tokens,
            "is_processing": at < len(busy),
            "id_task": busy[at] if at < len(busy) else None,
            "kv_blocks_used": stats.blocks_held,
            "kv_blocks_total": stats.blocks_total,
        }


def _is_of(own: str, id_: str) -> bool:
    return own == id_ or own.startswith(f"{id_}#")
