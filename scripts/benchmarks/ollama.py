"""What an Ollama user would notice: a long list of models, a store served in place, options that change, streams that
are given up, and a prefix that many share."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from scripts.benchmarks import rig

MODELS, LISTINGS = 500, 30
ABORTED, CLIENTS, PREFIX_WORDS = 20, 8, 1_950
PARAMETERS = b'{"temperature":0}'


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        _fill(store)
        before = _size(store)
        with rig.serving(
            "--models-dir", str(store), "--threads", str(rig.THREADS), "--max-context-len", "4096"
        ) as server:
            _list(server)
            _alternate(server.port)
            _abort(server.port)
            asyncio.run(_share(server.port))
        added = _size(store) - before
        print(f"served in place: {added} bytes more on disk (asked: under 1 MB)")


def _fill(store: Path) -> None:
    """Models that share their weights, each with layers of its own."""
    from fox.registry.catalog import starter_path
    from fox.registry.gguf import read_header
    from fox.registry.names import ModelName
    from fox.registry.store import Store
    from fox.registry.writing import Writer, described

    starter = starter_path()
    assert starter
    copied = Path(shutil.copy(starter, store.parent / "weights"))
    writer, config = Writer(Store(store)), described(read_header(copied))
    weights, _ = writer.adopt(copied, "model")
    parameters, _ = writer.add(PARAMETERS, "params")
    for at in range(MODELS):
        system, _ = writer.add(f"You are number {at}.".encode(), "system")
        writer.write(ModelName.parse(f"model{at}"), config, [weights, parameters, system])


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _list(server: rig.Server) -> None:
    cold, found = _timed(server.port)
    assert found >= MODELS
    bytes_before = _read_bytes(server.process.pid)
    took = [_timed(server.port)[0] for _ in range(LISTINGS)]
    read = (_read_bytes(server.process.pid) - bytes_before) / LISTINGS
    print(
        f"/api/tags with {MODELS} models: {rig.median(took) * 1e3:.1f} ms warm"
        f" (max {max(took) * 1e3:.1f}; asked: under 20), {cold * 1e3:.0f} ms cold; {read / 1e3:.1f} kB read a listing"
    )


def _read_bytes(pid: int) -> int:
    """Bytes that a process has read with system calls, sockets among them."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def _timed(port: int) -> tuple[float, int]:
    began = time.perf_counter()
    told = _ask(port, "/api/tags")
    return time.perf_counter() - began, len(told["models"])


def _alternate(port: int) -> None:
    """A different context on every request, as some clients send."""
    for at in range(10):
        options: dict[str, Any] = {"num_predict": 1}
        if at % 3 != 1:
            options["num_ctx"] = (2048, 0, 4096)[at % 3]
        _ask(port, "/api/generate", {"model": "model1", "prompt": "hi", "stream": False, "options": options})
    print(f"num_ctx of 2048, none and 4096 in turn, ten times: {_loads(port)} load (asked: 1)")


def _loads(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return int(
        sum(float(line.split()[-1]) for line in lines if line.startswith("ferrumox_model_loads_total"))
    )


def _abort(port: int) -> None:
    """Streams that their clients give up, then an unload."""

    async def give_up() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        data = json.dumps(
            {"model": "model1", "prompt": "Tell me a long story.", "options": {"num_predict": 2000}}
        )
        head = f"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write((head + data).encode())
        await reader.readuntil(b'"done":false')
        writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*(give_up() for _ in range(ABORTED)))

    asyncio.run(all_of_them())
    began = time.perf_counter()
    _ask(port, "/api/generate", {"model": "model1", "keep_alive": 0})
    while _ask(port, "/api/ps")["models"]:
        time.sleep(0.01)
    print(f"{ABORTED} aborted streams, then unload: {time.perf_counter() - began:.2f} s (asked: within 2)")


async def _share(port: int) -> None:
    """One long prefix, many clients at once."""
    prefix = " ".join(f"word{at % 97}" for at in range(PREFIX_WORDS // 2))

    def ask(at: int) -> dict[str, Any]:
        messages = [{"role": "system", "content": prefix}, {"role": "user", "content": f"Question {at}?"}]
        body = {"model": "model2", "messages": messages, "stream": False, "options": {"num_predict": 4}}
        return _ask(port, "/api/chat", body)

    _ask(port, "/api/generate", {"model": "model2", "prompt": ""})
    told = await asyncio.gather(*(asyncio.to_thread(ask, at) for at in range(CLIENTS)))
    total = sum(one["prompt_eval_count"] for one in told)
    cached = sum(one["prompt_eval_cached_count"] for one in told)
    once = told[0]["prompt_eval_count"]
    print(
        f"{CLIENTS} clients with one prefix: {total} prompt tokens, {total - cached} of them computed,"
        f" {(total - cached) / once:.2f} times one prompt of {once} (asked: once)"
    )


def _ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=300) as answer:
        return json.loads(answer.read())
