"""`fox serve`: answer requests over HTTP."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from fox import __version__, config
from fox.cli import logs
from fox.cli.listen import listen, url
from fox.cli.models import catalog
from fox.cli.options import settings_flags
from fox.errors import FoxError

if TYPE_CHECKING:
    from fox.registry import Catalog, Registry

EPILOG = (
    f"Every flag is also FOX_<NAME> in the environment, and a key of {config.DEFAULT_FILE} (or FOX_CONFIG)."
)


@click.command("serve", epilog=EPILOG)
@settings_flags()
def command(**flags: object) -> None:
    """Answer requests over HTTP: OpenAI's dialect under /v1, Ollama's under /api.

    Models load on first use. SIGTERM or Ctrl-C lets open answers finish; a second one ends them.
    """
    settings = config.load(flags)
    logs.set_up(settings.log_level, as_json=settings.json_logs)
    models = catalog(settings)
    with listen(settings.host, settings.port) as sock, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, models, sock))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    with suppress(ImportError):
        import uvloop

        factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
        return factory
    return None


async def _serve(settings: config.Settings, models: Catalog, sock: socket.socket) -> None:
    from fox.api import create_app
    from fox.cli.server import DrainingServer
    from fox.registry import Registry

    registry = Registry(models, settings.engine_options(), settings.registry_options())
    loads: set[asyncio.Task[None]] = set()

    def on_ready() -> None:
        logs.announce(f"fox {__version__} listening on {url(sock)}", as_json=settings.json_logs)
        if settings.model_path is not None:
            loads.add(asyncio.get_running_loop().create_task(_load(registry, models.entries()[0].name)))

    app = create_app(registry, settings.api_options())
    try:
        await DrainingServer(app, registry, settings.drain_secs, on_ready).serve([sock])
    finally:
        await registry.close()
        await asyncio.gather(*loads)


async def _load(registry: Registry, name: str) -> None:
    """Load at start, to stay. The registry logs a failure; the server lives on."""
    from fox.registry import Terms

    with suppress(FoxError, asyncio.CancelledError):
        async with registry.lease(name, Terms(keep_alive_s=math.inf)):
            pass
