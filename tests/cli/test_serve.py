"""`fox serve` from its start to its end: a real process, a real socket, a real echo child."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.processes import Stream, accepts, all_end, ask_fox, comes_true, fox, said, stream

SERVE = ("serve", "--engine", "echo", "--port", "0")
FEW = " ".join(f"w{i}" for i in range(20))  # a second of echo-slow
MANY = " ".join(f"w{i}" for i in range(1500))  # more than a minute of it


def health(url: str) -> dict[str, object]:
    with urllib.request.urlopen(f"{url}/health") as answer:
        return dict(json.load(answer))


def test_it_says_where_it_listens_and_answers_there() -> None:
    with fox(*SERVE) as server:
        assert health(server.url)["status"] == "ok"
        assert server.stdout == ""


def test_it_loads_no_heavy_library_in_the_parent() -> None:
    with fox(*SERVE) as server, stream(server.url, "hi", "echo") as answer:
        answer.rest()
        maps = Path(f"/proc/{server.process.pid}/maps")
        if not maps.exists():
            pytest.skip("needs /proc")
        assert "llama" not in maps.read_text()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_ends_cleanly_at(signum: signal.Signals) -> None:
    with fox(*SERVE) as server:
        assert accepts(server.url)
        server.signal(signum)
        assert server.exit_code() == 0
        assert "Traceback" not in server.stderr


def test_a_running_stream_is_finished_while_nobody_else_is_accepted() -> None:
    with fox(*SERVE) as server, stream(server.url, FEW) as answer:
        children = server.children()
        server.signal(signal.SIGTERM)
        assert comes_true(lambda: not accepts(server.url))
        events = answer.rest()
        assert said([answer.first, *events]) == FEW
        assert events[-1] == "[DONE]"
        assert server.exit_code() == 0
        assert all_end(children)
        assert "Traceback" not in server.stderr


def test_a_stream_is_ended_with_an_error_when_the_drain_time_is_over() -> None:
    with fox(*SERVE, "--drain-secs", "0.2") as server, stream(server.url, MANY) as answer:
        children = server.children()
        server.signal(signal.SIGTERM)
        events = answer.rest()
        assert "error" in events[-1] + events[-2]
        assert server.exit_code() == 0
        assert children
        assert all_end(children)
        assert "Traceback" not in server.stderr


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(second: signal.Signals) -> None:
    with fox(*SERVE, "--drain-secs", "600") as server, stream(server.url, MANY) as answer:
        children = server.children()
        server.signal(signal.SIGINT)
        assert comes_true(lambda: not accepts(server.url))
        server.signal(second)
        assert len(answer.rest()) < 1500
        assert server.exit_code() == 0
        assert all_end(children)


def test_a_client_that_does_not_read_does_not_hold_the_server_up() -> None:
    prompt = " ".join(f"{i}".zfill(2000) for i in range(2000))
    body = json.dumps({"model": "echo", "stream": True, "messages": [{"role": "user", "content": prompt}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with fox(*SERVE, "--drain-secs", "0.1") as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, port = server.url.removeprefix("http://").split(":")
        client.connect((host, int(port)))
        client.sendall((f"{head}Content-Type: application/json\r\n\r\n{body}").encode())
        assert client.recv(1)
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0
        assert "Traceback" not in server.stderr


def test_ctrl_c_in_a_terminal_lets_the_child_finish_the_stream() -> None:
    with fox(*SERVE, terminal=True) as server, stream(server.url, FEW) as answer:
        server.type("\x03")
        assert said([answer.first, *answer.rest()]) == FEW
        assert server.exit_code() == 0


def test_no_child_outlives_a_parent_that_is_killed() -> None:
    with fox(*SERVE) as server, stream(server.url, MANY):
        children = server.children()
        server.signal(signal.SIGKILL)
        assert children
        assert all_end(children)


def test_a_taken_port_is_one_line_and_a_hint() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = ask_fox("serve", "--port", str(port))
    assert answer.returncode == 1
    assert answer.stderr == (
        f"error: port {port} is already in use\nhint: `--port auto` takes a free one, `--port N` another\n"
    )


def test_two_servers_find_ports_of_their_own() -> None:
    serve = ("serve", "--engine", "echo", "--port", "auto")
    with fox(*serve) as one, fox(*serve) as other:
        assert one.url != other.url
        assert health(one.url)["status"] == health(other.url)["status"] == "ok"


def test_the_environment_configures_it() -> None:
    with fox("serve", env={"FOX_ENGINE": "echo", "FOX_PORT": "0", "FOX_JSON_LOGS": "yes"}) as server:
        url = server.url
        assert f"listening on {url}" in json.loads(server.stderr.splitlines()[0])["message"]


@pytest.mark.parametrize(("name", "reason"), [("nowhere.gguf", "does not exist"), ("", "is a directory")])
def test_a_model_path_that_names_no_file_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    answer = ask_fox("serve", "--port", "0", "--model-path", str(tmp_path / name))
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: `{tmp_path / name}` {reason}\nhint: ")


@pytest.mark.model
def test_a_model_that_fails_to_load_at_start_is_logged_and_the_server_lives_on(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF but not really")
    with fox("serve", "--port", "0", "--model-path", str(path)) as server:
        server.expect("error fox.registry: model 'broken' failed to load")
        assert health(server.url)["status"] == "ok"


@pytest.mark.model
def test_a_model_path_is_loaded_at_start(starter_path: Path) -> None:
    with fox("serve", "--port", "0", "--model-path", str(starter_path)) as server:
        server.expect("model ready: ")
        assert len(server.children()) == 1


@pytest.mark.model
def test_a_request_that_waits_for_a_model_is_refused_when_the_drain_time_is_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never.gguf")  # whoever opens it waits for ever
    args = ("serve", "--port", "0", "--models-dir", str(tmp_path), "--drain-secs", "0")
    with fox(*args) as server, ThreadPoolExecutor() as pool:
        waiting = pool.submit(lambda url: Stream(url, "never", "hi"), server.url)
        assert comes_true(lambda: len(server.children()) == 1)
        children = server.children()
        server.signal(signal.SIGTERM)
        answer = waiting.result()
        answer.connection.close()
        assert answer.status == 503
        assert server.exit_code() == 0
        assert all_end(children)
        assert "Traceback" not in server.stderr
