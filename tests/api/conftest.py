"""An app over fakes, asked in memory or over a real socket."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from fox.api import ApiOptions, create_app
from tests.api.fakes import FakeEngine, FakeRegistry
from tests.api.wire import in_memory


@pytest.fixture
async def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
async def registry(engine: FakeEngine) -> FakeRegistry:
    return FakeRegistry(engine)


@pytest.fixture
async def app(registry: FakeRegistry) -> Starlette:
    return create_app(registry, ApiOptions(max_body_mb=1))  # type: ignore[arg-type]


@pytest.fixture
async def client(app: Starlette):  # type: ignore[no-untyped-def]
    async with in_memory(app) as client:
        yield client
