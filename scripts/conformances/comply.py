"""llm-comply's tests of chat completions and of responses, against a real server with the starter model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from scripts.conformances.server import serving, starter_folder

FORMATS = ("openai-chat", "open-responses")
NAME = "deepseek-r-starter"  # the suite skips its tests of thoughts for models that are not called so
# The starter has no eyes: what shows it a picture is refused, as it should be.
EXPLAINED = {"chat-image-input": "the starter reads no images", "image-input": "the starter reads no images"}


def main(arguments: list[str]) -> int:
    with starter_folder(NAME) as folder, serving("--models-dir", folder) as url:
        return max(_suite(url, name) for name in arguments or FORMATS)


def _suite(url: str, name: str) -> int:
    program = Path(sys.executable).with_name("llm-comply")
    arguments = ["--base-url", f"{url}/v1", "--model", NAME, "--format", name, "--timeout", "120", "--json"]
    run = subprocess.run(
        [program, "run", *arguments, "--api-key", "none"],
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
        check=False,
    )
    try:
        told = json.loads(run.stdout)
    except ValueError:
        sys.exit(f"error: llm-comply said no JSON: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    counts = told["summary"]
    print(f"{name}: {counts['passed']} of {counts['total']} passed, {counts['skipped']} skipped")
    failed = [test for test in told["results"] if test["status"] != "passed"]
    for test in failed:
        why = EXPLAINED.get(test["id"]) or "; ".join(test.get("errors", ()))
        print(f"  {test['id']} {test['status']}: {why}")
    return int(any(test["id"] not in EXPLAINED for test in failed))
