"""`fox ps`: the models that a running server holds."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import Any

import click

from fox import config
from fox.cli import table
from fox.cli.refusal import Refusal

PATIENCE_S = 5.0
FOREVER_DAYS = 20 * 365  # how far ahead the dialect puts an expiry that never comes
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a server listens, not where one calls it
START = "`fox serve` starts one; `--url` or FOX_HOST says where it is"


@click.command("ps")
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
def command(url: str | None) -> None:
    """List the models a running server holds."""
    models = _running(url or _default_url())
    table.show([("NAME", "SIZE", "CONTEXT", "UNTIL"), *(_row(model) for model in models)])


def _default_url() -> str:
    settings = config.load({})
    host = EVERYWHERE.get(settings.host, settings.host)
    port = config.DEFAULT_PORT if settings.port == "auto" else settings.port
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _running(base: str) -> list[dict[str, Any]]:
    base = base if "://" in base else f"http://{base}"
    if not base.startswith(("http://", "https://")):
        raise Refusal(f"`{base}` is no http address", "a server's address reads `http://127.0.0.1:8080`")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy does not see this machine
    try:
        with direct.open(f"{base.rstrip('/')}/api/ps", timeout=PATIENCE_S) as answer:
            return list(json.load(answer)["models"])
    except (ValueError, KeyError, TypeError, urllib.error.HTTPError, http.client.HTTPException):
        raise Refusal(f"what answers on {base} is not fox", "`--url` or FOX_HOST says where fox is") from None
    except OSError:
        raise Refusal(f"no server answers on {base}", START) from None


def _row(model: dict[str, Any]) -> tuple[str, str, str, str]:
    context = str(model.get("context_length") or "-")
    return str(model["name"]), table.size(model.get("size", 0)), context, _until(model.get("expires_at"))


def _until(expires_at: str | None) -> str:
    if not expires_at:
        return "forever"
    left_s = (datetime.fromisoformat(expires_at) - datetime.now(UTC)).total_seconds()
    if left_s <= 0:
        return "stopping"
    if left_s > FOREVER_DAYS * 86400:
        return "forever"
    return f"in {left_s:.0f} s" if left_s < 100 else f"in {left_s / 60:.0f} min"
