"""Settings: the rooms' options side by side. Defaults < config file < environment < flags.

A row of `OPTIONS` is an option: its flag, its `FOX_...` name, its config key, type, default and help all
come from it. An option of the engine or the API needs such a field, with that default, in its room's dataclass.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fox.errors import FoxError

if TYPE_CHECKING:
    from fox.api import ApiOptions
    from fox.engine import EngineOptions

DEFAULT_FILE = "~/.config/ferrumox/config.toml"
DEFAULT_PORT = 8080

Room = Literal["server", "engine", "api"]


class ConfigError(FoxError):
    """A setting that cannot be used. `args`: what is wrong and where it came from, a hint."""

    code = "invalid_config"

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def hint(self) -> str:
        return str(self.args[1])


@dataclass(frozen=True)
class Kind:
    """A type of value. `read` takes text or a TOML value, as a person wrote it; ValueError at nonsense."""

    metavar: str
    expects: str
    read: Callable[[object], Any]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _word(value: object) -> str:
    if not _text(value).strip():
        raise ValueError
    return _text(value).strip()


def _path(value: object) -> Path:
    return Path(_word(value)).expanduser()


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    return float(value)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    return int(value)


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = _word(value).lower()
    if word not in ("1", "0", "true", "false", "yes", "no", "on", "off"):
        raise ValueError
    return word in ("1", "true", "yes", "on")


def _port(value: object) -> int | str:
    if value == "auto":
        return "auto"
    port = _whole(value)
    if not 0 <= port <= 65535:
        raise ValueError
    return port


def _host(value: object) -> str:
    host, _ = split_host(_word(value))
    return host


def _seconds(value: object) -> float:
    seconds = _number(value)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError
    return seconds


def _fraction(value: object) -> float:
    number = _number(value)
    if not 0 < number <= 1:
        raise ValueError
    return number


def _whole_from(least: int) -> Kind:
    def read(value: object) -> int:
        number = _whole(value)
        if not least <= number < 1 << 31:
            raise ValueError
        return number

    return Kind("N", f"a whole number, {least} or more", read)


def _one_of(*words: str) -> Kind:
    def read(value: object) -> str:
        word = _word(value).lower()
        if word not in words:
            raise ValueError
        return word

    return Kind("|".join(words), "one of " + ", ".join(f"`{word}`" for word in words), read)


TEXT = Kind("TEXT", "text", _text)
PATH = Kind("PATH", "a path", _path)
HOST = Kind("ADDRESS", "an address such as `127.0.0.1`, or `127.0.0.1:8080`", _host)
PORT = Kind("N|auto", "1 to 65535, or `auto`", _port)
SECONDS = Kind("SECONDS", "seconds, 0 or more", _seconds)
SWITCH = Kind("", "`true` or `false`", _switch)
COUNT = _whole_from(1)
FRACTION = Kind("FRACTION", "a number above 0, at most 1", _fraction)
ON_OFF = Kind("on|off", "`on` or `off`", _switch)
KV_TYPE = _one_of("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
ENGINE = _one_of("llama", "echo")
LEVEL = _one_of("debug", "info", "warning", "error")


@dataclass(frozen=True)
class Option:
    """One option. `default`: as a person would write it, or None. `on_run`: a flag of `fox run` too."""

    name: str
    kind: Kind
    default: object
    help: str
    room: Room = "server"
    on_run: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def env(self) -> str:
        return "FOX_" + self.name.upper()

    def read(self, value: object, source: str) -> Any:
        """The value as the rooms want it. Raises ConfigError that names `source`."""
        try:
            return self.kind.read(value)
        except ValueError:
            raise ConfigError(f"{source} cannot be `{value}`", f"give {self.kind.expects}") from None


OPTIONS: tuple[Option, ...] = (
    Option("host", HOST, "127.0.0.1", "address to listen on"),
    Option("port", PORT, DEFAULT_PORT, "port to listen on; `auto`: 8080 to 8180, then any free one"),
    Option("model_path", PATH, None, "GGUF to load at start", on_run=True),
    Option("models_dir", PATH, "~/.cache/ferrumox/models", "where models are kept", on_run=True),
    Option("engine", ENGINE, "llama", "`echo` speaks the prompt back: for tests", on_run=True),
    Option("json_logs", SWITCH, False, "write logs as JSON, one object a line"),
    Option("log_level", LEVEL, "info", "least level that is logged"),
    Option("drain_secs", SECONDS, 10, "how long open answers may go on after SIGTERM or Ctrl-C"),
    Option("max_context_len", COUNT, None, "tokens of prompt and answer [default: auto]", "engine", True),
    Option("max_batch_size", COUNT, 32, "sequences decoded together", "engine"),
    Option("max_queue_depth", _whole_from(0), 512, "requests that may wait; 0: no bound", "engine"),
    Option("max_prefill_chunk", COUNT, 512, "prompt tokens a step", "engine"),
    Option(
        "kv_layout",
        _one_of("auto", "lanes", "pool"),
        "auto",
        "KV memory: a lane a sequence, or one pool",
        "engine",
    ),
    Option("kv_host_mb", _whole_from(0), None, "MiB of RAM for KV states [default: auto]", "engine"),
    Option("kv_dir", PATH, None, "folder for KV states that survive a restart", "engine"),
    Option("kv_disk_mb", _whole_from(0), 4096, "MiB that `--kv-dir` may take", "engine"),
    Option("prefix_cache", ON_OFF, "on", "reuse prefixes that are computed already", "engine"),
    Option("block_size", COUNT, 16, "tokens a KV block", "engine"),
    Option(
        "type_kv",
        KV_TYPE,
        "f16",
        "type of KV cells: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl",
        "engine",
    ),
    Option("type_k", KV_TYPE, None, "type of K cells [default: as `--type-kv`]", "engine"),
    Option("type_v", KV_TYPE, None, "type of V cells [default: as `--type-kv`]", "engine"),
    Option("flash_attn", _one_of("auto", "on", "off"), "auto", "flash attention", "engine"),
    Option("swa_full", SWITCH, False, "keep what sliding windows have left behind", "engine"),
    Option("gpu_memory_fraction", FRACTION, 0.85, "part of the free memory that KV cells may take", "engine"),
    Option(
        "step_target_ms",
        COUNT,
        100,
        "by how much prompts may delay a step while somebody reads along",
        "engine",
    ),
    Option("speculative", SWITCH, False, "guess tokens by n-gram lookup, and check them", "engine"),
    Option("spec_ngram", COUNT, 2, "tokens that a lookup compares", "engine"),
    Option("spec_draft_len", COUNT, 4, "tokens that a lookup guesses", "engine"),
    Option("draft_model", PATH, None, "small GGUF of the same vocabulary that guesses tokens", "engine"),
    Option("context_shift", SWITCH, False, "roll a full context's window instead of ending", "engine"),
    Option("context_keep", _whole_from(0), 0, "first tokens that a rolling window keeps", "engine"),
    Option("threads", COUNT, None, "threads to compute with [default: physical cores]", "engine", True),
    Option("system_prompt", TEXT, "", "said first in a conversation that has no system message", "api", True),
    Option("max_body_mb", COUNT, 64, "largest request that is read, in MiB", "api"),
)

_ROWS = {option.name: option for option in OPTIONS}


@dataclass(frozen=True)
class Settings:
    """What the server itself needs, and in `rooms` what the rooms below need, by their own names."""

    host: str
    port: int | Literal["auto"]
    model_path: Path | None
    models_dir: Path
    engine: Literal["llama", "echo"]
    json_logs: bool
    log_level: str
    drain_secs: float
    rooms: Mapping[Room, Mapping[str, Any]]

    def engine_options(self) -> EngineOptions:
        from fox.engine import EngineOptions

        return EngineOptions(**self.rooms["engine"])

    def api_options(self) -> ApiOptions:
        from fox.api import ApiOptions

        return ApiOptions(**self.rooms["api"])

    @property
    def system_prompt(self) -> str:
        return str(self.rooms["api"]["system_prompt"])


def load(flags: Mapping[str, object], env: Mapping[str, str] | None = None) -> Settings:
    """The settings from all four sources. `flags`: option names to what was given; None is absent.

    Raises ConfigError: an unknown key in the file, a value that makes no sense, a file that cannot be read.
    """
    env = os.environ if env is None else env
    values: dict[str, Any] = dict.fromkeys(_ROWS)
    values |= _layer({row.name: row.default for row in OPTIONS}, lambda row: f"the default of `{row.name}`")
    values |= _file_layer(env)
    values |= _layer({row.name: env.get(row.env) or None for row in OPTIONS}, lambda row: f"`{row.env}`")
    values |= _layer(flags, lambda row: f"`{row.flag}`")
    rooms: dict[Room, dict[str, Any]] = {"server": {}, "engine": {}, "api": {}}
    for row in OPTIONS:
        rooms[row.room][row.name] = values[row.name]
    return Settings(**rooms.pop("server"), rooms=rooms)


def _layer(raw: Mapping[str, object], source: Callable[[Option], str]) -> dict[str, Any]:
    """One source's values, read. A port inside `host` counts as that source's `port` if it names none."""
    given = {name: value for name, value in raw.items() if value is not None}
    values = {name: _ROWS[name].read(value, source(_ROWS[name])) for name, value in given.items()}
    port = split_host(str(given.get("host", "")))[1]
    if port is not None and "port" not in values:
        values["port"] = _ROWS["port"].read(port, source(_ROWS["host"]))
    return values


def split_host(address: str) -> tuple[str, str | None]:
    """`10.0.0.1:80` -> (`10.0.0.1`, `80`), `[::1]:80` -> (`::1`, `80`), `::1` -> (`::1`, None)."""
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        return host, rest[1:] if rest.startswith(":") else None
    if address.count(":") == 1:
        host, _, port = address.partition(":")
        return host, port
    return address, None


def _file_layer(env: Mapping[str, str]) -> dict[str, Any]:
    named = env.get("FOX_CONFIG")
    path = Path(named or DEFAULT_FILE).expanduser()
    try:
        content = path.read_text("utf-8")
    except FileNotFoundError:
        if named:
            raise ConfigError(f"no file `{path}`", "`FOX_CONFIG` names it: unset it or write it") from None
        return {}
    except (OSError, ValueError) as error:
        reason = str(error.strerror).lower() if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"cannot read `{path}`: {reason}", "this is fox's config file") from None
    return _layer(_parsed(content, path), lambda row: f"`{row.name}` in `{path}`")


def _parsed(content: str, path: Path) -> dict[str, object]:
    import tomli

    try:
        table = tomli.loads(content)
    except tomli.TOMLDecodeError as error:
        raise ConfigError(f"`{path}` is not TOML: {error}", "a line reads `port = 8080`") from None
    for key in table:
        if key not in _ROWS:
            raise ConfigError(f"unknown key `{key}` in `{path}`", _nearest(key))
    return table


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key, _ROWS, n=1)
    return f"did you mean `{near[0]}`?" if near else "known keys: " + ", ".join(_ROWS)
