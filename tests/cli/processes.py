"""Real `python -m fox ...` processes, and bounded waits for what they say and do."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import psutil

PATIENCE_S = 20.0

# A session's leader that opens a terminal gets it as its own: Ctrl-C there reaches the whole job.
IN_TERMINAL = """
import os, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))
os.execv(sys.executable, [sys.executable, "-m", "fox", *sys.argv[1:]])
"""


class Fox:
    """One running command. Threads collect its output, so that a wait is a wait for a text.

    With `terminal`, its stdin is a terminal of its own and it is that terminal's foreground job, as in a shell.
    """

    def __init__(self, args: Sequence[str], env: Mapping[str, str], *, terminal: bool) -> None:
        self._changed = threading.Condition()
        self._texts = {"stdout": "", "stderr": ""}
        self._keyboard, stdin = pty.openpty() if terminal else reversed(os.pipe())
        self.process = subprocess.Popen(
            [sys.executable, *(("-c", IN_TERMINAL) if terminal else ("-m", "fox")), *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | env,
            start_new_session=True,
        )
        os.close(stdin)
        self._readers = [
            threading.Thread(target=self._collect, args=("stdout", self.process.stdout)),
            threading.Thread(target=self._collect, args=("stderr", self.process.stderr)),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def url(self) -> str:
        """Where the server listens, once it says so."""
        return self.expect(r"listening on (http://[^\s\"]+)")[1]

    @property
    def stdout(self) -> str:
        return self._texts["stdout"]

    @property
    def stderr(self) -> str:
        return self._texts["stderr"]

    def expect(self, pattern: str, stream: str = "stderr", after: int = 0) -> re.Match[str]:
        """Wait until a stream holds `pattern`, past its first `after` characters."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: re.search(pattern, self._texts[stream][after:]), PATIENCE_S
            )
        assert found, f"{pattern!r} did not come on {stream}: {self._texts}"
        return found

    def type(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def exit_code(self) -> int:
        """Wait for the end of the process and of its output."""
        code = self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.exit_code()
        os.close(self._keyboard)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()

    def _collect(self, stream: str, pipe: object) -> None:
        while chunk := os.read(pipe.fileno(), 65536):  # type: ignore[attr-defined]
            with self._changed:
                self._texts[stream] += chunk.decode()
                self._changed.notify_all()


@contextmanager
def fox(*args: str, env: Mapping[str, str] | None = None, terminal: bool = False) -> Iterator[Fox]:
    process = Fox(args, env or {}, terminal=terminal)
    try:
        yield process
    finally:
        process.close()


def ask_fox(
    *args: str, text: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with `text` on its stdin."""
    return subprocess.run(
        [sys.executable, "-m", "fox", *args],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | (env or {}),
        check=False,
    )


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether it holds in bounded time."""
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.01)
    return True


def all_end(processes: Sequence[psutil.Process]) -> bool:
    """Whether these processes end in bounded time. One that nobody has reaped yet has ended."""

    def ended(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return process.status() == psutil.STATUS_ZOMBIE
        return True

    return comes_true(lambda: all(ended(process) for process in processes))


def accepts(url: str) -> bool:
    """Whether anybody listens there."""
    address = urlsplit(url)
    with suppress(ConnectionRefusedError), socket.create_connection((address.hostname, address.port)):
        return True
    return False


class Stream:
    """An answer on its way from a server's chat completions route."""

    def __init__(self, url: str, model: str, prompt: str) -> None:
        address = urlsplit(url)
        assert address.hostname
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE_S)
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": prompt}]}
        self.connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        self._answer = self.connection.getresponse()
        self.status = self._answer.status
        self.first = self._event()

    def rest(self) -> list[str]:
        """The data of every further event, to the end of the stream."""
        events = []
        while event := self._event():
            events.append(event)
        return events

    def _event(self) -> str:
        while line := self._answer.readline():
            if line.startswith(b"data: "):
                return line[6:].decode().strip()
        return ""


@contextmanager
def stream(url: str, prompt: str, model: str = "echo-slow") -> Iterator[Stream]:
    one = Stream(url, model, prompt)
    try:
        yield one
    finally:
        one.connection.close()


def said(events: Sequence[str]) -> str:
    """The text of an answer's events."""
    chunks = [json.loads(event) for event in events if event and event != "[DONE]"]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", [])]
    return "".join(delta.get("content") or "" for delta in deltas)
