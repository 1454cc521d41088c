"""`python -m fox`, and the `fox` script."""

from __future__ import annotations

import sys


def main() -> None:
    from fox.cli import run_group

    sys.exit(run_group())


if __name__ == "__main__":
    main()
