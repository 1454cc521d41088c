"""The counters and gauges, named once and counted in the parent only. Gauges are read when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

Loads = Callable[[], Mapping[tuple[str, str], int]]
Status = Literal["stop", "length", "cancelled", "failed"]

LATENCY_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
TTFT_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
INTER_TOKEN_BUCKETS_S = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5)

# What engines count themselves: name -> (help, labels beside `model`)
ENGINE_GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "kv_blocks": ("KV blocks of the device", ("tier", "state")),
    "kv_saved_bytes": ("bytes of KV states outside the device", ("tier",)),
    "spec_acceptance_ratio": ("part of the guessed tokens that were right", ()),
}
ENGINE_TOTALS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prompt_tokens": ("tokens of prompts", ()),
    "prefix_tokens": ("tokens of prompts that were not computed again, by where they were found", ("tier",)),
    "prefix_cache_hits": ("prompts that found a prefix of theirs computed", ()),
    "prefix_cache_misses": ("prompts that found none", ()),
    "preemptions": ("sequences sent back to the queue for want of room", ()),
    "swaps": ("preempted sequences whose state was saved", ()),
    "spec_tokens_proposed": ("tokens that were guessed", ()),
    "spec_tokens_accepted": ("guessed tokens that were right", ()),
    "step_seconds": ("time of the engine's steps, by what it went into", ("part",)),
}


@dataclass(frozen=True)
class Reading:
    """What one engine says of itself. `kv_usage`: the part of its KV memory that running requests hold, 0 to 1.

    `gauges` are true now, `totals` count since it was loaded; both by metric name, then by the values of its labels.
    """

    model: str
    running: int
    waiting: int
    kv_usage: float
    gauges: Mapping[str, Mapping[tuple[str, ...], float]] = field(default_factory=dict)
    totals: Mapping[str, Mapping[tuple[str, ...], float]] = field(default_factory=dict)


class Meter:
    """The counters of one model, their label already bound."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._requests = {
            status: metrics.requests.labels(model, status)
            for status in ("stop", "length", "cancelled", "failed")
        }
        self._latency = metrics.latency.labels(model)
        self.first_token_after = metrics.ttft.labels(model).observe
        self.next_token_after = metrics.inter_token.labels(model).observe
        self.generated = metrics.tokens.labels(model).inc

    def ended(self, status: Status, seconds: float) -> None:
        self._requests[status].inc()
        self._latency.observe(seconds)


class Metrics:
    """One registry, made once an app. `read` tells the state of every running engine, `loads` how often each model was
    loaded, by its name and why.

    A request is counted once: in `requests` if an engine was asked for its answer (also one that a client gave up
    while a model was loading), in `rejected` if it was refused before that.
    """

    def __init__(self, read: Callable[[], Iterable[Reading]], loads: Loads = dict) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "requests, by how they ended", "model", "status")
        self._rejected = self._counter("requests_rejected", "requests refused, by why", "model", "reason")
        self.tokens = self._counter("tokens_generated", "tokens that were generated", "model")
        self.latency = self._seconds(
            "request_latency_seconds", "from a request to its end", LATENCY_BUCKETS_S
        )
        self.ttft = self._seconds("ttft_seconds", "from a request to its first token", TTFT_BUCKETS_S)
        says = "from one piece of an answer's text to the next"
        self.inter_token = self._seconds("inter_token_seconds", says, INTER_TOKEN_BUCKETS_S)
        self.registry.register(_Gauges(read, loads))
        self._meters: dict[str, Meter] = {}

    def meter(self, model: str) -> Meter:
        """The counters of a model that exists; a name that a client made up is no label."""
        if model not in self._meters:
            self._meters[model] = Meter(self, model)
        return self._meters[model]

    def rejected(self, model: str, reason: str) -> None:
        """A request was refused. `model`: "" where no model was found; `reason`: the error's code."""
        self._rejected.labels(model, reason).inc()

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"ferrumox_{name}", says, labels, registry=self.registry)

    def _seconds(self, name: str, says: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"ferrumox_{name}", says, ("model",), registry=self.registry, buckets=buckets)


class _Gauges(Collector):
    """What the engines say of themselves at the moment of the scrape."""

    def __init__(self, read: Callable[[], Iterable[Reading]], loads: Loads) -> None:
        self._read = read
        self._loads = loads

    def collect(self) -> Iterator[Metric]:
        readings = list(self._read())
        yield _gauge("models", "models that are loaded", [(r.model, 1) for r in readings])
        yield _gauge("queue_depth", "requests that wait", [(r.model, r.waiting) for r in readings])
        yield _gauge("active_requests", "requests being decoded", [(r.model, r.running) for r in readings])
        usage = [(r.model, r.kv_usage) for r in readings]
        yield _gauge(
            "kv_cache_usage_ratio", "part of the KV memory that running requests hold, 0 to 1", usage
        )
        loads = CounterMetricFamily("ferrumox_model_loads", "loads, by why", labels=("model", "reason"))
        for which, count in self._loads().items():
            loads.add_metric(which, count)
        yield loads
        for name, (says, labels) in ENGINE_GAUGES.items():
            yield _family(
                GaugeMetricFamily, name, says, labels, [(r.model, r.gauges.get(name, {})) for r in readings]
            )
        for name, (says, labels) in ENGINE_TOTALS.items():
            rows = [(r.model, r.totals.get(name, {})) for r in readings]
            yield _family(CounterMetricFamily, name, says, labels, rows)


def _family(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    says: str,
    labels: tuple[str, ...],
    rows: Iterable[tuple[str, Mapping[tuple[str, ...], float]]],
) -> Metric:
    family = kind(f"ferrumox_{name}", says, labels=("model", *labels))
    for model, values in rows:
        for more, value in values.items():
            family.add_metric((model, *more), value)
    return family


def _gauge(name: str, says: str, values: Iterable[tuple[str, float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"ferrumox_{name}", says, labels=("model",))
    for model, value in values:
        family.add_metric((model,), value)
    return family
