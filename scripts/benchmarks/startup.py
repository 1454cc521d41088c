"""`fox --help`, time to `/health`, time from the first request to its first token."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

from scripts.benchmarks import rig


def run() -> None:
    help_s = [_cpu_of([sys.executable, "-m", "fox", "--help"]) for _ in range(7)]
    print(f"fox --help: {rig.median(help_s) * 1000:.0f} ms of CPU (asked: under 150)")
    health, first = [], []
    for _ in range(3):
        began = time.perf_counter()
        with rig.serving("--threads", str(rig.THREADS)) as server:
            _wait_for_health(server.port)
            health.append(time.perf_counter() - began)
            stream = asyncio.run(rig.chat(server.port, "smollm2:135m", "Say hello.", 8))
            first.append(stream.ttft_s)
    print(f"/health after {rig.median(health):.2f} s (asked: within 1)")
    print(
        f"first token of the first request after {rig.median(first):.2f} s, load included (asked: within 2)"
    )


def _cpu_of(command: list[str]) -> float:
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _wait_for_health(port: int) -> None:
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
            return
        except urllib.error.URLError:
            time.sleep(0.005)
