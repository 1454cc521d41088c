"""`python -m scripts.benchmarks [--peer URL] [NAME ...]`: run the named benchmarks, or all."""

from __future__ import annotations

import argparse
import importlib
import os

NAMES = ("startup", "decode", "batch", "echo", "load", "spec", "embed", "forms", "ollama")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument(
        "--peer", help="another OpenAI-compatible server for the same loads, http://127.0.0.1:PORT"
    )
    asked = parser.parse_args()
    if asked.peer:
        os.environ["FOX_BENCH_PEER"] = asked.peer
    for name in asked.names or NAMES:
        if name not in NAMES:
            parser.error(f"no benchmark `{name}`: one of {', '.join(NAMES)}")
        print(f"== {name}", flush=True)
        importlib.import_module(f"scripts.benchmarks.{name}").run()


main()
