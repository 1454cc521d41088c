"""Files on their way to a server: hashed here, linked where the server sees this disk, else sent."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fox.cli.client import Client
from fox.cli.progress import Progress
from fox.cli.refusal import Refusal

CHUNK_BYTES = 1 << 20
UNCONVERTED = ("*.safetensors", "pytorch_model*.bin", "consolidated*.pth")
CONVERT = "llama.cpp's `convert_hf_to_gguf.py` makes a GGUF of it"


class Sender:
    """`models_dir`: where a server on this machine may keep its models."""

    def __init__(self, client: Client, models_dir: Path, progress: Progress) -> None:
        self._client = client
        self._blobs = models_dir / "blobs"
        self._progress = progress

    def sent(self, named: str, folder: Path) -> dict[str, str] | None:
        """`{file name: digest}` of what `named` is the path of, with the server now. None where there is no such path:
        it is a model's name then. Raises Refusal.
        """
        path = expanded(named, folder)
        if path is None or not path.exists():
            if _is_path(named):
                raise Refusal(f"no file `{named}`", f"paths count from `{folder}`")
            return None
        file = _gguf_in(path) if path.is_dir() else path
        return {file.name: self._send(file)}

    def must_send(self, named: str, folder: Path) -> dict[str, str]:
        """The same of what can be nothing but a path."""
        if (files := self.sent(named, folder)) is None:
            raise Refusal(f"no file `{named}`", f"paths count from `{folder}`")
        return files

    def _send(self, file: Path) -> str:
        try:
            digest = self._digest(file)
            if not self._client.has(f"/api/blobs/{digest}") and not self._linked(file, digest):
                self._upload(file, digest)
        except OSError as error:
            raise Refusal(f"cannot read `{file}`: {str(error.strerror).lower()}") from None
        return digest

    def _digest(self, file: Path) -> str:
        found = hashlib.sha256()
        for chunk in self._chunks(file, "gathering model components"):
            found.update(chunk)
        return f"sha256:{found.hexdigest()}"

    def _linked(self, file: Path, digest: str) -> bool:
        """Whether the server has the file now without a byte copied. A link that it does not see is taken away."""
        if not self._client.local:
            return False
        blob = self._blobs / digest.replace(":", "-")
        try:
            self._blobs.mkdir(parents=True, exist_ok=True)
            blob.hardlink_to(os.path.realpath(file))
        except OSError:
            return False
        if self._client.has(f"/api/blobs/{digest}"):
            return True
        with suppress(OSError):
            blob.unlink()
            self._blobs.rmdir()  # only where nothing else is in it
        return False

    def _upload(self, file: Path, digest: str) -> None:
        chunks = self._chunks(file, f"copying file {digest}")
        self._client.upload(f"/api/blobs/{digest}", chunks, file.stat().st_size)

    def _chunks(self, file: Path, status: str) -> Iterator[bytes]:
        done, total = 0, file.stat().st_size
        self._progress.step(status, done, total)
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk
                done += len(chunk)
                self._progress.step(status, done, total)


def expanded(named: str, folder: Path) -> Path | None:
    """The path that `named` may be, `~` and `~user` written out. None where no path can be so."""
    try:
        return folder / Path(named).expanduser()
    except (RuntimeError, ValueError):
        return None


def _is_path(named: str) -> bool:
    """What no model can be named."""
    return named.startswith(("/", "./", "../", "~", ".\\")) or named.endswith(".gguf") or named in (".", "..")


def _gguf_in(folder: Path) -> Path:
    """The first GGUF of a folder. Raises Refusal where there is none, or where it is a link that leads out of it."""
    found = sorted(one for one in folder.glob("*.gguf") if not one.name.startswith("."))
    if not found:
        what = next((form for form in UNCONVERTED if any(folder.glob(form))), None)
        if what:
            raise Refusal(f"`{folder}` holds a model that is not in GGUF form: {what}", CONVERT)
        raise Refusal(f"no GGUF in `{folder}`", "`FROM` names a GGUF, or a model")
    if not Path(os.path.realpath(found[0])).is_relative_to(os.path.realpath(folder)):
        raise Refusal(
            f"insecure path: {found[0]}", "it is a link that leads out of the folder: name its file"
        )
    return found[0]
