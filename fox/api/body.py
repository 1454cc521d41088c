"""Reads a request's body up to a limit, whatever its Content-Type says, and unpacks one that was packed."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import zstandard
from starlette.requests import Request

from fox.api.failures import BodyTooLarge, UnknownEncoding
from fox.errors import InvalidRequest

MIB = 1 << 20
ANY_ZLIB = 47  # wbits: gzip or zlib, as the data says


async def read_body(request: Request, max_mb: int) -> bytes:
    """Raises BodyTooLarge without reading or unpacking more than it has to, UnknownEncoding, InvalidRequest,
    ClientDisconnect where the client leaves."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_mb * MIB:
        raise BodyTooLarge(max_mb)
    encoding = request.headers.get("content-encoding", "").strip().lower() or "identity"
    if encoding not in UNPACK:
        raise UnknownEncoding(encoding[:64])
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_mb * MIB:
            raise BodyTooLarge(max_mb)
    try:
        unpacked = UNPACK[encoding](bytes(body), max_mb * MIB + 1)
    except (zlib.error, zstandard.ZstdError) as error:
        raise InvalidRequest(f"the body is not valid {encoding}: {error}", None) from None
    if len(unpacked) > max_mb * MIB:
        raise BodyTooLarge(max_mb)
    return unpacked


def _zlib(body: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(ANY_ZLIB)
    unpacked = unpacker.decompress(body, most)
    if not unpacker.eof and len(unpacked) < most:
        raise zlib.error("it is cut short")
    if unpacker.unused_data:
        raise zlib.error("something follows its end")
    return unpacked


def _zstd(body: bytes, most: int) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(body) as reader:
        return reader.read(most)


UNPACK: dict[str, Callable[[bytes, int], bytes]] = {
    "identity": lambda body, most: body,
    "gzip": _zlib,
    "deflate": _zlib,
    "zstd": _zstd,
}
