"""The ways to a server: addresses, proxies, and the routes in this process."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from fox import config
from fox.cli import client as clients
from fox.cli.client import Client, Refused, base_url, connect, default_url, in_process, is_loopback
from fox.cli.refusal import Refusal
from tests.cli.fake_ollama import Said, chat_lines, ollama


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"FOX_HOST": "0.0.0.0:81"}, "http://127.0.0.1:81"),
        ({"FOX_HOST": "[::]:81"}, "http://[::1]:81"),
        ({"FOX_HOST": "box", "FOX_PORT": "82"}, "http://box:82"),
        ({"FOX_PORT": "auto"}, "http://127.0.0.1:8080"),
        ({"OLLAMA_HOST": "box"}, "http://box:11434"),
        ({"OLLAMA_HOST": "http://box"}, "http://box:80"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": "box:1", "FOX_HOST": "fox", "FOX_PORT": "2"}, "http://fox:2"),
    ],
)
def test_the_environment_names_a_server(env: dict[str, str], url: str) -> None:
    assert default_url(config.load({}, env)) == url


@pytest.mark.parametrize(
    ("text", "url"), [("box:1", "http://box:1"), ("https://box/ollama/", "https://box/ollama")]
)
def test_an_address_is_completed(text: str, url: str) -> None:
    assert base_url(text) == url


@pytest.mark.parametrize("text", ["ftp://x", "http://", "http://x:99999", "http://x:y", "http://[x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="is no http address"):
        base_url(text)


@pytest.mark.parametrize(
    ("host", "near"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True), ("box", False)],
)
def test_loopback_is_this_machine(host: str, near: bool) -> None:
    assert is_loopback(host) is near


def test_nobody_on_this_machine_is_no_client(no_server: str) -> None:
    assert connect(None) is None


def test_nobody_on_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOX_HOST", "192.0.2.1:1")
    monkeypatch.setattr("fox.cli.http.PATIENCE_S", 0.05)
    with pytest.raises(Refusal, match=r"no server answers on http://192\.0\.2\.1:1"):
        connect(None)


def test_another_machine_is_asked_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    base = "http://models.invalid:8080/prefix"
    with ollama({f"HEAD {base}/": Said(), f"GET {base}/api/tags": Said({"models": []})}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        client = connect(base)
        assert client
        assert client.get("/api/tags") == {"models": []}
        assert not client.local


def test_a_path_in_the_address_is_kept() -> None:
    with ollama({"HEAD /prefix/": Said(), "GET /prefix/api/tags": Said({"models": []})}) as server:
        client = connect(f"{server.url}/prefix")
        assert client
        assert client.get("/api/tags") == {"models": []}


def test_a_client_says_who_it_is() -> None:
    with ollama() as server:
        connect(server.url)
        (head,) = server.asked
    assert head.headers["user-agent"].startswith("fox/")


def test_a_stream_that_is_closed_midway_closes_its_connection() -> None:
    with ollama({"POST /api/chat": Said(chat_lines("a")[:1], holds=True)}) as server:
        client = connect(server.url)
        assert client
        lines = client.stream("/api/chat", {})
        next(lines)
        lines.close()  # type: ignore[attr-defined]
        assert server.left.wait(clients.PATIENCE_S)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr("fox.cli.logs.silence", lambda: None)
    settings = config.load({"engine": "echo", "models_dir": str(tmp_path)}, {})
    return in_process(settings)


def test_the_routes_answer_in_this_process(here: Client) -> None:
    with closing(here):
        assert here.has("/")
        assert "echo:latest" in [one["name"] for one in here.get("/api/tags")["models"]]
        asked = {"model": "echo", "messages": [{"role": "user", "content": "a b"}]}
        said = [line["message"]["content"] for line in here.stream("/api/chat", asked)]
        assert "".join(said).strip() == "a b"


def test_a_refusal_in_this_process_has_its_status(here: Client) -> None:
    with closing(here), pytest.raises(Refused, match="model 'x' not found") as refused:
        here.post("/api/generate", {"model": "x", "prompt": "hi"})
    assert refused.value.status == 404


def test_an_answer_in_this_process_that_nobody_reads_on_is_stopped(here: Client) -> None:
    asked = {"model": "echo-slow", "messages": [{"role": "user", "content": "word " * 500}]}
    with closing(here):
        lines = here.stream("/api/chat", asked)
        next(lines)
        lines.close()  # type: ignore[attr-defined]
        assert here.post("/api/chat", {"model": "echo-slow", "stream": False, **asked, "messages": []})[
            "done"
        ]


def test_a_file_is_sent_in_this_process(here: Client, tmp_path: Path) -> None:
    digest = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    with closing(here):
        assert not here.has(f"/api/blobs/{digest}")
        here.upload(f"/api/blobs/{digest}", iter([b"hel", b"lo"]), 5)
        assert here.has(f"/api/blobs/{digest}")
    assert (tmp_path / "blobs" / digest.replace(":", "-")).read_bytes() == b"hello"
