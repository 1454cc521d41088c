"""Which web pages may ask, and under which names."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from fox.api import ApiOptions, create_app
from tests.api.fakes import FakeEngine, FakeRegistry
from tests.api.wire import asking, in_memory, serving

pytestmark = pytest.mark.anyio

GIVEN = "https://chat.example.com, chrome-extension://*, http://*.lan:3000"


@pytest.fixture
def app() -> Starlette:
    return create_app(FakeRegistry(FakeEngine()), ApiOptions(cors_origins=GIVEN))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://localhost", 200),
        ("http://localhost:5173", 200),
        ("https://127.0.0.1:8443", 200),
        ("http://0.0.0.0:3000", 200),
        ("http://[::1]:3000", 200),
        ("app://obsidian.md", 200),
        ("file://", 200),
        ("tauri://localhost", 200),
        ("vscode-webview://1a2b", 200),
        ("https://chat.example.com", 200),
        ("HTTPS://CHAT.EXAMPLE.COM", 200),
        ("chrome-extension://abcdef", 200),
        ("http://nas.lan:3000", 200),
        ("null", 403),
        ("http://example.com", 403),
        ("http://chat.example.com", 403),
        ("https://chat.example.com:8443", 403),
        ("https://chat.example.com.evil.org", 403),
        ("http://localhost.evil.org", 403),
        ("http://evil.org/localhost", 403),
        ("http://127.0.0.1.evil.org:80", 403),
    ],
)
async def test_an_origin_is_allowed_or_told_how_to_be(
    app: Starlette, origin: str | None, status: int
) -> None:
    headers = {} if origin is None else {"origin": origin}
    async with in_memory(app) as client:
        for path in ("/api/tags", "/v1/models"):
            answer = await client.get(path, headers=headers)
            assert answer.status_code == status, path
            if status == 403:
                assert "OLLAMA_ORIGINS" in str(answer.json()["error"])
            elif origin:
                assert answer.headers["access-control-allow-origin"] == origin
                assert "x-fox-truncated" in answer.headers["access-control-expose-headers"]


async def test_a_page_of_this_very_server_may_ask(app: Starlette) -> None:
    async with in_memory(app) as client:
        headers = {"origin": "http://fox.example.com", "host": "fox.example.com"}
        assert (await client.get("/v1/models", headers=headers)).status_code == 200


async def test_everybody_may_ask_where_that_is_said() -> None:
    app = create_app(FakeRegistry(FakeEngine()), ApiOptions(cors_origins="*"))  # type: ignore[arg-type]
    async with in_memory(app) as client:
        answer = await client.get("/v1/models", headers={"origin": "http://example.com"})
        assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("path", ["/api/chat", "/v1/chat/completions", "/v1/models"])
async def test_a_preflight_is_answered(app: Starlette, path: str) -> None:
    asked = {
        "origin": "http://localhost:3000",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, x-stainless-os",
        "access-control-request-private-network": "true",
    }
    async with in_memory(app) as client:
        answer = await client.options(path, headers=asked)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert answer.headers["access-control-max-age"] == "43200"
        assert answer.headers["access-control-allow-private-network"] == "true"
        for header in ("authorization", "x-api-key", "anthropic-version", "x-stainless-os"):
            assert header in answer.headers["access-control-allow-headers"].lower()
        refused = await client.options(path, headers=asked | {"origin": "http://evil.org"})
        assert refused.status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("0.0.0.0", 200),
        ("192.168.1.7:11434", 200),
        ("10.1.2.3", 200),
        ("box.local", 200),
        ("fox.internal:80", 200),
        ("app.localhost", 200),
        ("chat.example.com", 200),
        ("evil.org", 403),
        ("evil.org:8080", 403),
        ("8.8.8.8", 403),
        ("localhost.evil.org", 403),
        ("notlocalhost", 403),
    ],
)
async def test_over_loopback_this_machine_goes_by_its_own_names(
    app: Starlette, host: str, status: int
) -> None:
    async with serving(app) as port, asking(port) as client:
        answer = await client.get("/api/version", headers={"host": host})
        assert answer.status_code == status
        if status == 403:
            assert host.partition(":")[0] in answer.json()["error"]


async def test_one_who_asks_without_a_page_is_not_looked_at(app: Starlette) -> None:
    async with serving(app) as port, asking(port) as client:
        answer = await client.get("/v1/models", headers={"authorization": "Bearer"})
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers
