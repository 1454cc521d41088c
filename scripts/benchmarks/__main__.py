"""`python -m scripts.benchmarks [NAME ...]`: run the named benchmarks, or all."""

from __future__ import annotations

import importlib
import sys

NAMES = ("startup", "decode", "batch", "echo")


def main(names: list[str]) -> None:
    for name in names or NAMES:
        if name not in NAMES:
            raise SystemExit(f"error: no benchmark `{name}`\nhint: one of {', '.join(NAMES)}")
        print(f"== {name}", flush=True)
        importlib.import_module(f"scripts.benchmarks.{name}").run()


main(sys.argv[1:])
