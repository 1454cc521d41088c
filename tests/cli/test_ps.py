"""`fox ps`, against a server that says what we want."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fox.cli.ps import processor, until
from fox.cli.table import size
from tests.cli.fake_ollama import Answer, Fields, Said, model, ollama
from tests.cli.processes import ask_fox


def ps(*entries: Fields) -> dict[str, Answer]:
    return {"GET /api/ps": Said({"models": list(entries)})}


def test_columns_are_aligned_under_their_heads() -> None:
    entry = model("smollm2:135m", context_length=2048, expires_at="2318-01-01T00:00:00Z", size_vram=0)
    with ollama(ps(entry)) as server:
        answer = ask_fox("ps", "--url", f"{server.url}/")
    assert answer.stdout.splitlines() == [
        "NAME            ID              SIZE      PROCESSOR    CONTEXT    UNTIL",
        "smollm2:135m    baf6a787fdff    1.3 GB    100% CPU     2048       Forever",
    ]
    assert server.lines == ["HEAD /", "GET /api/ps"]


@pytest.mark.parametrize("variable", ["FOX_HOST", "OLLAMA_HOST"])
def test_the_environment_says_where_the_server_is(variable: str) -> None:
    with ollama(ps()) as server:
        address = server.url.removeprefix("http://")
        answer = ask_fox("ps", env={variable: address, "http_proxy": "http://127.0.0.1:1"})
    assert (answer.returncode, answer.stdout) == (
        0,
        "NAME    ID    SIZE    PROCESSOR    CONTEXT    UNTIL\n",
    )


def test_fox_host_counts_before_ollama_host() -> None:
    with ollama(ps()) as server:
        env = {"FOX_HOST": server.url.removeprefix("http://"), "OLLAMA_HOST": "127.0.0.1:1"}
        assert ask_fox("ps", env=env).returncode == 0


def test_a_server_that_listens_everywhere_is_called_on_this_machine() -> None:
    with ollama(ps()) as server:
        port = server.url.rpartition(":")[2]
        assert ask_fox("ps", env={"OLLAMA_HOST": f"0.0.0.0:{port}"}).returncode == 0


def test_no_server_is_one_line_and_a_hint(no_server: str) -> None:
    answer = ask_fox("ps")
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[0] == f"error: no server answers on {no_server}"
    assert answer.stderr.splitlines()[1].startswith("hint: `fox serve` starts one")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", 200),
        (b"{}", 200),
        (b"[]", 200),
        (b'{"models": null}', 200),
        (b'{"models": [1]}', 200),
        (b"404 page not found", 404),
        (b"\xff", 200),
    ],
)
def test_another_server_is_told_from_fox(body: bytes, status: int) -> None:
    with ollama({"GET /api/ps": Said(body, status)}) as server:
        answer = ask_fox("ps", env=server.env)
    assert answer.returncode == 1
    assert f"error: what answers on {server.url} is not fox\n" in answer.stderr


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 KB"),
        (98_362_432, "98 MB"),
        (145_000_000, "145 MB"),
        (4_700_000_000, "4.7 GB"),
        (3e12, "3 TB"),
    ],
)
def test_sizes_are_decimal(size_bytes: float, text: str) -> None:
    assert size(size_bytes) == text


@pytest.mark.parametrize(
    ("left_s", "text"),
    [
        (-1, "Stopping..."),
        (30.4, "30 seconds from now"),
        (290.4, "4 minutes from now"),
        (1e9, "Forever"),
    ],
)
def test_an_expiry_is_told_as_time_left(left_s: float, text: str) -> None:
    assert until((datetime.now(UTC) + timedelta(seconds=left_s)).isoformat()) == text


def test_no_expiry_is_never() -> None:
    assert until(None) == "Never"


def test_nanoseconds_and_offsets_are_understood() -> None:
    assert until("2001-01-01T00:00:00.123456789-07:00") == "Stopping..."


@pytest.mark.parametrize(
    ("size_bytes", "on_gpu", "text"),
    [
        (1000, 0, "100% CPU"),
        (0, 0, "100% CPU"),
        (1000, 1000, "100% GPU"),
        (1000, 520, "48%/52% CPU/GPU"),
        (1000, 2000, "Unknown"),
    ],
)
def test_a_processor_is_told_by_where_the_bytes_are(size_bytes: int, on_gpu: int, text: str) -> None:
    assert processor(size_bytes, on_gpu) == text
