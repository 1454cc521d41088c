"""Pictures and sounds that a prompt names by their paths, for models that can use them."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import click

from fox.cli.refusal import Refusal

LARGEST_BYTES = 100 << 20
PATHS = re.compile(r"(?:[a-zA-Z]:)?(?:\./|/|\\)[\S\\ ]+?\.(?:jpg|jpeg|png|webp|wav)\b", re.IGNORECASE)
MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF")


def take(prompt: str) -> tuple[str, list[str]]:
    """The prompt without the paths of its files, and those files in base64. What is no file stays where it is.

    Raises Refusal for a file that cannot be used.
    """
    files: list[str] = []
    for named in PATHS.findall(prompt):
        path = Path(named.replace("\\ ", " ").replace("\\(", "(").replace("\\)", ")")).expanduser()
        if not path.is_file():
            continue
        files.append(base64.b64encode(_bytes(path)).decode())
        click.echo(f"added `{path}`", err=True)
        prompt = prompt.replace(f"'{named}'", "").replace(named, "")
    return (prompt.strip(), files) if files else (prompt, files)


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise Refusal(f"`{path}` is larger than 100 MB")
        data = path.read_bytes()
    except OSError as error:
        raise Refusal(f"cannot read `{path}`: {str(error.strerror).lower()}") from None
    if not data.startswith(MAGIC):
        raise Refusal(f"`{path}` is no JPEG, PNG, WebP or WAV")
    return data
