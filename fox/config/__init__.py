"""Settings: the rooms' options side by side. Defaults < config file < OLLAMA_... < FOX_... < flags.

A row of `OPTIONS` is an option: its flag, its `FOX_...` name, its config key, type, default and help all
come from it. An option of the engine or the API needs such a field, with that default, in its room's dataclass.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fox.config import ollama
from fox.config.kinds import SWITCH, split_host
from fox.config.options import DEFAULT_PORT, OPTIONS, ConfigError, Option, Room
from fox.config.options import env as env_name
from fox.config.options import flag as flag_name

if TYPE_CHECKING:
    from fox.api import ApiOptions
    from fox.engine import EngineOptions
    from fox.registry import RegistryOptions

__all__ = ["DEFAULT_PORT", "OPTIONS", "SWITCH", "ConfigError", "Option", "Settings", "load", "split_host"]

DEFAULT_FILE = "~/.config/ferrumox/config.toml"
OLLAMAS_PLACE = {"port": ollama.DEFAULT_PORT, "models_dir": ollama.DEFAULT_MODELS_DIR}
_ROWS = {name: option for option in OPTIONS for name in option.names}


@dataclass(frozen=True)
class Settings:
    """What the server itself needs, and in `rooms` what the rooms below need, by their own names."""

    host: str
    port: int | Literal["auto"]
    model_path: Path | None
    models_dir: Path
    alias_file: Path
    ollama: bool
    engine: Literal["llama", "echo"]
    json_logs: bool
    log_level: str
    drain_secs: float
    rooms: Mapping[Room, Mapping[str, Any]]

    def engine_options(self) -> EngineOptions:
        from fox.engine import EngineOptions

        return EngineOptions(**self.rooms["engine"])

    def registry_options(self) -> RegistryOptions:
        from fox.registry import RegistryOptions

        return RegistryOptions(**self.rooms["registry"])

    def api_options(self) -> ApiOptions:
        from fox.api import ApiOptions

        return ApiOptions(**self.rooms["api"])

    @property
    def system_prompt(self) -> str:
        return str(self.rooms["api"]["system_prompt"])


def load(flags: Mapping[str, object], env: Mapping[str, str] | None = None) -> Settings:
    """The settings from all five sources. `flags`: option names to what was given; None is absent.

    Raises ConfigError: an unknown key in the file, a value that makes no sense, a file that cannot be read.
    """
    env = os.environ if env is None else env
    said = _file_layer(env) | _ollama_layer(env)
    given = {name: env.get(env_name(name)) or None for name in _ROWS}
    said |= _layer(given, lambda name: f"`{env_name(name)}`")
    said |= _layer(flags, lambda name: f"`{flag_name(name)}`")
    defaults = {row.name: row.default for row in OPTIONS} | (OLLAMAS_PLACE if said.get("ollama") else {})
    values: dict[str, Any] = dict.fromkeys(row.name for row in OPTIONS)
    values |= _layer(defaults, "the default of `{}`".format) | said
    _refuse_contradictions(values)
    rooms: dict[Room, dict[str, Any]] = {"server": {}, "registry": {}, "engine": {}, "api": {}}
    for row in OPTIONS:
        rooms[row.room][row.name] = values[row.name]
    return Settings(**rooms.pop("server"), rooms=rooms)


def _refuse_contradictions(values: Mapping[str, Any]) -> None:
    cells = values["type_v"] or values["type_kv"]
    if values["flash_attn"] == "off" and cells not in ("f32", "f16", "bf16"):
        hint = "give `--type-v f16`, or leave `--flash-attn` to `auto`"
        raise ConfigError(f"V cells of type {cells} cannot be read with `--flash-attn off`", hint)


def _layer(raw: Mapping[str, object], source: Callable[[str], str]) -> dict[str, Any]:
    """One source's values, read. A port inside `host` counts as that source's `port` if it names none."""
    given = {name: value for name, value in raw.items() if value is not None}
    read = {name: _ROWS[name].read(value, source(name)) for name, value in given.items()}
    synonyms_first = sorted(read, key=lambda name: name == _ROWS[name].name)
    values = {_ROWS[name].name: read[name] for name in synonyms_first}
    port = split_host(str(given.get("host", "")))[1]
    if port is not None and "port" not in values:
        values["port"] = _ROWS["port"].read(port, source("host"))
    return values


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
    return _layer(_parsed(content, path), lambda name: f"`{name}` in `{path}`")


def _ollama_layer(env: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value, variable in ollama.from_environment(env):
        values[name] = _ROWS[name].read(value, f"`{variable}`")
    return values


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
