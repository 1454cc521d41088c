"""What `OLLAMA_...` in the environment says, in the words of fox's own options.

https://github.com/ollama/ollama/blob/main/envconfig/config.go. Values lose white space and quotes around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

DEFAULT_PORT = 11434
DEFAULT_MODELS_DIR = "~/.ollama/models"
SCHEME_PORTS = {"http": 80, "https": 443}
FALSE = ("0", "f", "false")


def from_environment(env: Mapping[str, str]) -> Iterator[tuple[str, object, str]]:
    """`(option, value as a person would write it, the variable it comes from)`. Those that are empty are absent."""
    for variable, options in VARIABLES.items():
        if text := env.get(variable, "").strip(" \t\r\n\"'"):
            for option, value in options(text):
                yield option, value, variable


def split_address(address: str) -> tuple[str, int]:
    """Host and port of OLLAMA_HOST. No port, or one that makes no sense, is the scheme's, or else 11434."""
    scheme, _, rest = address.rpartition("://")
    port = SCHEME_PORTS.get(scheme.lower(), DEFAULT_PORT)
    rest = rest.partition("/")[0]
    host, colon, last = rest.rpartition(":")
    if rest.startswith("[") and rest.endswith("]"):
        return rest[1:-1], port
    if not colon or (":" in host and not host.endswith("]")):
        return rest or "127.0.0.1", port
    if last.isascii() and last.isdecimal() and int(last) <= 65535:
        port = int(last)
    return host.strip("[]") or "127.0.0.1", port


def _address(text: str) -> Iterator[tuple[str, object]]:
    host, port = split_address(text)
    yield "host", host
    yield "port", port


def _named(option: str, read: Callable[[str], object] = str) -> Callable[[str], Iterator[tuple[str, object]]]:
    def one(text: str) -> Iterator[tuple[str, object]]:
        yield option, read(text)

    return one


def _counted(option: str) -> Callable[[str], Iterator[tuple[str, object]]]:
    """0 leaves it to the server."""

    def one(text: str) -> Iterator[tuple[str, object]]:
        if text != "0":
            yield option, text

    return one


def _is_on(text: str) -> bool:
    """Go's: what is no boolean is true."""
    return text.lower() not in FALSE


VARIABLES: dict[str, Callable[[str], Iterator[tuple[str, object]]]] = {
    "OLLAMA_HOST": _address,
    "OLLAMA_MODELS": _named("models_dir"),
    "OLLAMA_KEEP_ALIVE": _named("keep_alive_secs", lambda text: "now" if text.strip("0smh") == "" else text),
    "OLLAMA_NUM_PARALLEL": _counted("max_batch_size"),
    "OLLAMA_MAX_LOADED_MODELS": _named("max_models"),
    "OLLAMA_MAX_QUEUE": _named("max_queue_depth"),
    "OLLAMA_ORIGINS": _named("cors_origins"),
    "OLLAMA_CONTEXT_LENGTH": _counted("context_len"),
    "OLLAMA_KV_CACHE_TYPE": _named("type_kv"),
    "OLLAMA_FLASH_ATTENTION": _named("flash_attn", lambda text: "on" if _is_on(text) else "auto"),
    "OLLAMA_DEBUG": _named("log_level", lambda text: "debug" if _is_on(text) else "info"),
    "OLLAMA_GO_TEMPLATE": _named("go_template", lambda text: "on" if _is_on(text) else "off"),
}
