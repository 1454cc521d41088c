"""schemathesis makes requests of all kinds from /openapi.json: none of them may end in a 5xx."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts.conformances.server import serving

EXAMPLES = 40  # of each operation


def main(arguments: list[str]) -> int:
    with serving("--max-context-len", "512") as url:
        program = Path(sys.executable).with_name("schemathesis")
        command = [program, "run", f"{url}/openapi.json", "--checks", "not_a_server_error", "--no-color"]
        command += [
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            str(EXAMPLES),
            "--seed",
            "1",
            "--request-timeout",
            "120",
        ]
        root = Path(__file__).parents[2]
        env = os.environ | {
            "SCHEMATHESIS_HOOKS": "scripts.conformances.schema_hooks",
            "PYTHONPATH": str(root),
        }
        return subprocess.run([*command, *arguments], env=env, check=False).returncode
