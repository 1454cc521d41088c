"""A server that records what it is asked, and answers as it was told to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fields = dict[str, Any]

SHOWN: Fields = {
    "details": {
        "parent_model": "",
        "family": "llama",
        "parameter_size": "1.2B",
        "quantization_level": "Q4_K_M",
    },
    "model_info": {
        "general.architecture": "llama",
        "llama.context_length": 8192,
        "llama.embedding_length": 576,
    },
    "capabilities": ["completion"],
    "modified_at": "2026-08-21T10:11:12.123456789Z",
}
STATS: Fields = {
    "total_duration": 2_500_000_000,
    "load_duration": 20_300_000,
    "prompt_eval_count": 7,
    "prompt_eval_duration": 70_000_000,
    "eval_count": 10,
    "eval_duration": 500_000_000,
}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: Any
    headers: Mapping[str, str]

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Said:
    """An answer: one object, lines of a stream, or bytes. `holds`: the stream stays open after its lines."""

    body: Fields | Sequence[Fields] | bytes = b""
    status: int = 200
    holds: bool = False


Answer = Said | Callable[[Any], Said]


@dataclass
class Ollama:
    """`answers` by `METHOD /path`; one that is missing is a 404 in the dialect's words."""

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    blobs: set[str] = field(default_factory=set)
    left: threading.Event = field(default_factory=threading.Event)
    """A client has closed its connection to a stream that holds."""

    @property
    def lines(self) -> list[str]:
        return [one.line for one in self.asked]

    @property
    def env(self) -> dict[str, str]:
        return {"FOX_HOST": self.url.removeprefix("http://")}

    def bodies(self, path: str) -> list[Any]:
        return [one.body for one in self.asked if one.path == path]

    def answer(self, asked: Asked) -> Said:
        if asked.line in ("HEAD /", "GET /"):
            return Said(b"Ollama is running")
        if asked.path.startswith("/api/blobs/"):
            return self._blob(asked)
        found = self.answers.get(asked.line, Said({"error": "not here"}, 404))
        return found if isinstance(found, Said) else found(asked.body)

    def _blob(self, asked: Asked) -> Said:
        digest = asked.path.rpartition("/")[2]
        if asked.method == "HEAD":
            return Said(status=200 if digest in self.blobs else 404)
        assert digest == f"sha256:{hashlib.sha256(asked.body).hexdigest()}"
        self.blobs.add(digest)
        return Said(status=201)


class Handler(BaseHTTPRequestHandler):
    fake: Ollama

    def _take(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_json = self.headers.get("content-type") == "application/json"
        asked = Asked(
            self.command, self.path, json.loads(data) if is_json and data else data, dict(self.headers)
        )
        self.fake.asked.append(asked)
        self._say(self.fake.answer(asked))

    do_GET = do_HEAD = do_POST = do_DELETE = _take  # noqa: N815 - http.server's names

    def _say(self, said: Said) -> None:
        self.send_response(said.status)
        self.end_headers()
        if self.command == "HEAD":
            return
        body = said.body
        if isinstance(body, bytes | dict):
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())
            return
        for line in body:
            self.wfile.write(json.dumps(line).encode() + b"\n")
        if said.holds:
            self.connection.recv(1)
            self.fake.left.set()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def ollama(answers: Mapping[str, Answer] | None = None, kind: type[Ollama] = Ollama) -> Iterator[Ollama]:
    fake = kind(answers=dict(answers or {}))
    handler = type("One", (Handler,), {"fake": fake})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        fake.url = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield fake
        finally:
            httpd.shutdown()
            thread.join()


def chat_lines(*pieces: str, thoughts: Sequence[str] = (), end: Fields | None = None) -> list[Fields]:
    """/api/chat's answer, a line a piece."""
    role: Fields = {"role": "assistant"}
    said = [{"message": {**role, "content": "", "thinking": thought}, "done": False} for thought in thoughts]
    said += [{"message": {**role, "content": piece}, "done": False} for piece in pieces]
    return [
        *said,
        {"message": {**role, "content": ""}, "done": True, "done_reason": "stop", **(end or STATS)},
    ]


def generate_lines(*pieces: str, thoughts: Sequence[str] = ()) -> list[Fields]:
    said: list[Fields] = [{"response": "", "thinking": thought, "done": False} for thought in thoughts]
    said += [{"response": piece, "done": False} for piece in pieces]
    return [*said, {"response": "", "done": True, "done_reason": "stop", "context": [1, 2], **STATS}]


def model(name: str, **fields: Any) -> Fields:
    """A row of /api/tags or /api/ps."""
    return {
        "name": name,
        "model": name,
        "size": 1_321_098_329,
        "digest": "baf6a787fdff" + "0" * 52,
        "modified_at": "2001-08-21T10:11:12.123456789Z",
        **fields,
    }
