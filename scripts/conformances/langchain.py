"""langchain-tests for ChatOpenAI, against a real server with the starter model."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from scripts.conformances.server import serving

CASES = Path(__file__).with_name("langchain_cases.py")
# What a model of 135M parameters cannot do, whoever serves it.
EXPLAINED = {
    "test_agent_loop[model0]": "it does not choose to call a tool that it may call",
    "test_agent_loop[model1]": "it does not choose to call a tool that it may call",
    "test_json_mode": "JSON mode promises an object, not its keys, and it leaves some out",
}


def main(arguments: list[str]) -> int:
    with serving() as url, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        own = Path(folder) / "pytest.ini"
        loops = "".join(f"asyncio_default_{what}_loop_scope = session\n" for what in ("fixture", "test"))
        own.write_text(f"[pytest]\nasyncio_mode = auto\n{loops}")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            str(own),
            f"--rootdir={folder}",
        ]
        command += [str(CASES), f"--junitxml={report}", *arguments]
        env = os.environ | {"FOX_URL": url, "PYTHONPATH": str(CASES.parents[2])}
        subprocess.run(command, env=env, check=False, stdout=subprocess.DEVNULL)
        return _told(report)


def _told(report: Path) -> int:
    cases = list(ElementTree.parse(report).iter("testcase"))
    skipped = [case for case in cases if case.find("skipped") is not None]
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    print(
        f"langchain: {len(cases) - len(failed) - len(skipped)} of {len(cases)} passed, {len(skipped)} skipped"
    )
    for case in failed:
        name = case.get("name", "")
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        message = (failure.get("message") or "").splitlines()[:1] if failure is not None else []
        print(f"  {name}: {EXPLAINED.get(name) or ''.join(message)}")
    return int(any(case.get("name") not in EXPLAINED for case in failed))
