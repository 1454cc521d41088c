"""What watchers and command lines ask: health, metrics, versions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import orjson
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fox.api.operation import Operation
from fox.api.options import ApiOptions
from fox.engine import EngineStats
from fox.metrics import Metrics, Reading
from fox.registry import Registry


def readings(registry: Registry) -> Iterator[Reading]:
    """What each running engine does now."""
    for engine in registry.running():
        stats = engine.stats
        yield Reading(
            engine.name, stats.running, stats.waiting, stats.kv_usage, _gauges(stats), _totals(stats)
        )


def _gauges(stats: EngineStats) -> dict[str, dict[tuple[str, ...], float]]:
    held: dict[tuple[str, ...], float] = {
        ("device", "held"): stats.blocks_held,
        ("device", "free"): stats.blocks_total - stats.blocks_held,
    }
    right = stats.spec_accepted / stats.spec_proposed if stats.spec_proposed else 0.0
    return {
        "kv_blocks": held,
        "kv_saved_bytes": {("host",): stats.host_bytes, ("disk",): stats.disk_bytes},
        "spec_acceptance_ratio": {(): right},
    }


def _totals(stats: EngineStats) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        "prompt_tokens": {(): stats.prompt_tokens},
        "prefix_tokens": {(tier,): tokens for tier, tokens in stats.hit_tokens.items()},
        "prefix_cache_hits": {(): stats.hits},
        "prefix_cache_misses": {(): stats.misses},
        "preemptions": {(): stats.preemptions},
        "swaps": {(): stats.swaps},
        "spec_tokens_proposed": {(): stats.spec_proposed},
        "spec_tokens_accepted": {(): stats.spec_accepted},
        "step_seconds": {(part,): seconds for part, seconds in stats.step_seconds.items()},
    }


class Ops:
    """Answers at once and touches no engine."""

    def __init__(self, registry: Registry, metrics: Metrics, options: ApiOptions) -> None:
        self._registry = registry
        self._metrics = metrics
        self._options = options
        self._started_at = int(time.time())

    def operations(self) -> list[Operation]:
        return [
            Operation("GET", "/", self.root, "whether anybody is there"),
            Operation("GET", "/health", self.health, "how busy the server is"),
            Operation("GET", "/metrics", self.metrics, "all counts, in Prometheus' words"),
            Operation("GET", "/api/version", self.version, "the version of Ollama that clients may rely on"),
        ]

    async def root(self, request: Request) -> Response:
        return PlainTextResponse("Ollama is running")

    async def health(self, request: Request) -> Response:
        """200, or 503 while the server drains. Over all engines; the fullest one's KV usage."""
        now = list(readings(self._registry))
        draining = request.app.state.draining
        fields = {
            "status": "draining" if draining else "ok",
            "kv_cache_usage": max((r.kv_usage for r in now), default=0.0),
            "queue_depth": sum(r.waiting for r in now),
            "active_requests": sum(r.running for r in now),
            "model_name": now[0].model if now else None,
            "started_at": self._started_at,
        }
        return _json(fields, 503 if draining else 200)

    async def metrics(self, request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self._metrics.registry), headers={"content-type": content_type})

    async def version(self, request: Request) -> Response:
        return _json({"version": self._options.ollama_version})


def _json(fields: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(fields), status, media_type="application/json")
