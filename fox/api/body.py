"""Reads a request's body up to a limit, whatever its Content-Type says."""

from __future__ import annotations

from starlette.requests import Request

from fox.api.failures import BodyTooLarge

MIB = 1 << 20


async def read_body(request: Request, max_mb: int) -> bytes:
    """Raises BodyTooLarge without reading more than it has to, ClientDisconnect where the client leaves."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_mb * MIB:
        raise BodyTooLarge(max_mb)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_mb * MIB:
            raise BodyTooLarge(max_mb)
    return bytes(body)
