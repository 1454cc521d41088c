"""A real server in a real process, and a client thin enough not to disturb it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "bench-results"
THREADS = 2


@dataclass
class Server:
    process: subprocess.Popen[str]
    port: int
    started_s: float  # from the process's start to its first line


@contextmanager
def serving(*flags: str) -> Iterator[Server]:
    """`fox serve` on a free port, ended by SIGTERM."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "fox", "serve", "--port", "auto", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield Server(process, _port(process), time.perf_counter() - began)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"http://[^:]+:(\d+)", line):
            return int(found[1])
    raise SystemExit("error: the server did not start")


@dataclass
class Stream:
    """One streamed answer: when it was asked, and when each piece of text came (seconds, perf_counter)."""

    asked: float = 0.0
    times: list[float] = field(default_factory=list)
    tokens: int = 0
    prompt_tokens: int = 0
    text: str = ""

    @property
    def ttft_s(self) -> float:
        return self.times[0] - self.asked

    @property
    def decode_s(self) -> float:
        return self.times[-1] - self.times[0]


async def chat(port: int, model: str, content: str, max_tokens: int, **more: object) -> Stream:
    """One streamed chat completion over a socket of its own."""
    messages = [{"role": "user", "content": content}]
    body = {"model": model, "messages": messages, "stream": True, "max_tokens": max_tokens}
    return await post(
        port, "/v1/chat/completions", {**body, "stream_options": {"include_usage": True}, **more}
    )


def watch(port: int, model: str, content: str, max_tokens: int, **more: object) -> Stream:
    """One stream read by a blocking socket that only notes when bytes come: next to no work beside the server's."""
    messages = [{"role": "user", "content": content}]
    body = {"model": model, "messages": messages, "stream": True, "max_tokens": max_tokens}
    data = json.dumps({**body, "stream_options": {"include_usage": True}, **more}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Length: {len(data)}\r\n\r\n"
    got: list[tuple[float, bytes]] = []
    stream = Stream(time.perf_counter())
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(head.encode() + data)
        while piece := sock.recv(65536):
            got.append((time.perf_counter(), piece))
    stream.times = [at for at, piece in got if b'"content":"' in piece and b'"content":""' not in piece]
    tail = b"".join(piece for _, piece in got).rpartition(b'"usage":{')[2]
    stream.tokens = int(re.search(rb'"completion_tokens":(\d+)', tail)[1])  # type: ignore[index]
    return stream


async def post(port: int, path: str, body: dict[str, object]) -> Stream:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    stream = Stream(time.perf_counter())
    writer.write(head.encode() + data)
    async for line in reader:
        if line.startswith(b"data: {"):
            _take(stream, line[6:])
    writer.close()
    return stream


def _take(stream: Stream, data: bytes) -> None:
    if b'"content":"' in data and b'"content":""' not in data:
        stream.times.append(time.perf_counter())
        stream.text += json.loads(data)["choices"][0]["delta"]["content"]
    elif b'"usage":{' in data:
        usage = json.loads(data)["usage"]
        stream.tokens, stream.prompt_tokens = usage["completion_tokens"], usage["prompt_tokens"]
    elif b'"error"' in data:
        raise SystemExit(f"error: {data.decode()}")


def cpu_seconds(pid: int) -> float:
    """User and system time of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def median(values: list[float]) -> float:
    return statistics.median(values)


def starter() -> Path:
    from fox.registry.catalog import Catalog

    path = Catalog(None).find("smollm2:135m").path
    assert path is not None
    return path


def q8_0() -> Path:
    """The starter model at Q8_0, made once (requantized: its words are not its quality)."""
    path = RESULTS / "smollm2-135m-q8_0.gguf"
    if not path.exists():
        from fox.engine.llama.bindings import lib

        RESULTS.mkdir(exist_ok=True)
        params = lib.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize, params.nthread = lib.LLAMA_FTYPE_MOSTLY_Q8_0, True, THREADS
        part = path.with_suffix(".part")
        assert lib.llama_model_quantize(str(starter()).encode(), str(part).encode(), params) == 0
        part.rename(path)
    return path
