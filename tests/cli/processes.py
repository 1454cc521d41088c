"""Real `python -m fox ...` processes, and bounded waits for what they say and do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

PATIENCE_S = 20.0


class Fox:
    """One running command. Its stdout and stderr are collected by threads, so that a wait is a wait for a line."""

    def __init__(self, args: Sequence[str], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fox", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | (env or {}),
        )
        assert self.process.stdout
        assert self.process.stderr
        self._changed = threading.Condition()
        self._texts = {"stdout": "", "stderr": ""}
        self._readers = [
            threading.Thread(target=self._collect, args=("stdout", self.process.stdout.fileno())),
            threading.Thread(target=self._collect, args=("stderr", self.process.stderr.fileno())),
        ]
        for reader in self._readers:
            reader.start()

    def expect(self, pattern: str, stream: str = "stderr") -> re.Match[str]:
        """Wait until a stream holds `pattern`."""
        with self._changed:
            found = self._changed.wait_for(lambda: re.search(pattern, self._texts[stream]), PATIENCE_S)
        assert found, f"{pattern!r} did not come on {stream}: {self._texts}"
        return found

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
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()

    def _collect(self, stream: str, fd: int) -> None:
        while chunk := os.read(fd, 65536):
            with self._changed:
                self._texts[stream] += chunk.decode()
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


@contextmanager
def fox(*args: str, env: dict[str, str] | None = None) -> Iterator[Fox]:
    process = Fox(args, env)
    try:
        yield process
    finally:
        process.close()


def ask_fox(
    *args: str, text: str = "", env: dict[str, str] | None = None
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


def all_gone(processes: Sequence[psutil.Process]) -> bool:
    """Whether these processes end in bounded time. An unreaped one has ended."""
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    return all(process.status() == psutil.STATUS_ZOMBIE for process in alive if process.is_running())
