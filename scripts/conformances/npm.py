"""The official npm client, against a real server with the starter model. Needs node and npm."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from scripts.conformances.server import MODEL, serving

CLIENT = "openai@7.60.0"
CASES = Path(__file__).with_name("npm_client.mjs")


def main(arguments: list[str]) -> int:
    if not shutil.which("npm"):
        print("npm: not here, so nothing was tried")
        return 0
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        subprocess.run(
            ["npm", "install", "--silent", "--no-fund", "--no-audit", CLIENT], cwd=folder, check=True
        )
        script = shutil.copy(CASES, folder)
        env = os.environ | {"FOX_URL": url, "FOX_MODEL": MODEL}
        print("npm:", CLIENT)
        return subprocess.run(["node", script], cwd=folder, env=env, check=False).returncode
