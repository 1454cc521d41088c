"""`python -m scripts.conformances [NAME [ARGUMENT ...]]`: run the named suite, or all."""

from __future__ import annotations

import importlib
import sys

NAMES = ("toolcalls", "comply", "langchain", "schemathesis", "npm")


def main() -> int:
    name, *arguments = sys.argv[1:] or ("",)
    if name and name not in NAMES:
        sys.exit(f"error: there is no suite `{name}`\nhint: there are {', '.join(NAMES)}")
    codes = []
    for suite in (name,) if name else NAMES:
        print(f"== {suite}", flush=True)
        codes.append(importlib.import_module(f"scripts.conformances.{suite}").main(arguments))
    return max(codes)


sys.exit(main())
