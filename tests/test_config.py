"""Settings: which source wins, and how nonsense is refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from fox import config
from fox.config import OPTIONS, ConfigError, load, split_host


def config_file(tmp_path: Path, content: str) -> dict[str, str]:
    path = tmp_path / "config.toml"
    path.write_text(content)
    return {"FOX_CONFIG": str(path)}


def test_each_source_beats_the_one_before_it(tmp_path: Path) -> None:
    env = config_file(tmp_path, "port = 1001\nthreads = 1\ndrain_secs = 1.5")
    assert load({}, {}).port == 8080
    assert load({}, env).port == 1001
    assert load({}, env | {"FOX_PORT": "1002"}).port == 1002
    assert load({"port": "1003"}, env | {"FOX_PORT": "1002"}).port == 1003
    assert load({"port": None}, env).drain_secs == 1.5


def test_the_file_is_read_from_home_where_nothing_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".config/ferrumox/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('models_dir = "~/gguf"')
    assert load({}, {}).models_dir == tmp_path / "gguf"


def test_a_synonym_is_taken_on_every_way_in_and_the_name_itself_beats_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("kv_reuse = false")
    env = {"FOX_CONFIG": str(file), "FOX_CACHE_RAM": "7"}
    rooms = load({}, env).rooms["engine"]
    assert (rooms["prefix_cache"], rooms["kv_host_mb"]) == (False, 7)
    rooms = load({"prefix_cache": "on"}, env | {"FOX_KV_HOST_MB": "9"}).rooms["engine"]
    assert (rooms["prefix_cache"], rooms["kv_host_mb"]) == (True, 9)
    with pytest.raises(ConfigError, match="`FOX_CACHE_RAM` cannot be"):
        load({}, {"FOX_CACHE_RAM": "much"})


def test_an_empty_environment_value_is_absent() -> None:
    assert load({}, {"FOX_PORT": "", "FOX_CONFIG": "", "FOX_MODEL_PATH": ""}).port == 8080


def test_a_system_prompt_can_be_emptied_by_a_flag() -> None:
    assert load({"system_prompt": ""}, {"FOX_SYSTEM_PROMPT": "Be brief."}).system_prompt == ""


@pytest.mark.parametrize("word", ["1", "true", "YES", "on"])
def test_a_switch_is_turned_on_by(word: str) -> None:
    assert load({}, {"FOX_JSON_LOGS": word}).json_logs is True


@pytest.mark.parametrize("word", ["0", "false", "No", "off"])
def test_a_switch_is_turned_off_by(word: str, tmp_path: Path) -> None:
    assert load({}, config_file(tmp_path, "json_logs = true") | {"FOX_JSON_LOGS": word}).json_logs is False


@pytest.mark.parametrize(
    ("env", "flags", "host", "port"),
    [
        ({"FOX_HOST": "10.0.0.1:9000"}, {}, "10.0.0.1", 9000),
        ({"FOX_HOST": "10.0.0.1:9000", "FOX_PORT": "9001"}, {}, "10.0.0.1", 9001),
        ({"FOX_PORT": "9001"}, {"host": "[::1]:9000"}, "::1", 9000),
        ({"FOX_HOST": "10.0.0.1:9000"}, {"host": "::1"}, "::1", 9000),
        ({}, {"host": "localhost", "port": "auto"}, "localhost", "auto"),
    ],
)
def test_a_host_may_carry_a_port(
    env: dict[str, str], flags: dict[str, object], host: str, port: int | str
) -> None:
    settings = load(flags, env)
    assert (settings.host, settings.port) == (host, port)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("a.example", ("a.example", None)),
        ("a.example:80", ("a.example", "80")),
        ("::1", ("::1", None)),
        ("[::1]", ("::1", None)),
        ("[::1]:80", ("::1", "80")),
    ],
)
def test_an_address_splits_into_host_and_port(address: str, parts: tuple[str, str | None]) -> None:
    assert split_host(address) == parts


NONSENSE = [
    ("port", "banana"),
    ("port", "65536"),
    ("port", "-1"),
    ("host", " "),
    ("host", "127.0.0.1:banana"),
    ("threads", "0"),
    ("threads", "1.5"),
    ("threads", "99999999999"),
    ("max_context_len", "-4096"),
    ("max_batch_size", "0"),
    ("max_queue_depth", "-1"),
    ("max_prefill_chunk", "many"),
    ("drain_secs", "nan"),
    ("drain_secs", "-0.5"),
    ("engine", "lama"),
    ("log_level", "loud"),
    ("model_path", " "),
]


@pytest.mark.parametrize(("name", "value"), NONSENSE)
def test_nonsense_names_its_flag(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"`--[a-z-]+` cannot be `{value.rpartition(':')[2]}`"):
        load({name: value}, {})


@pytest.mark.parametrize(("name", "value"), [*NONSENSE, ("json_logs", "maybe")])
def test_nonsense_names_its_environment_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=r"`FOX_[A-Z_]+` cannot be"):
        load({}, {f"FOX_{name.upper()}": value})


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("prot = 1", "unknown key `prot`", "did you mean `port`?"),
        ("max_contxt_len = 1", "unknown key `max_contxt_len`", "did you mean `max_context_len`?"),
        ("[xyz]\nport = 1", "unknown key `xyz`", "known keys: host, port"),
        ("port = ", "is not TOML", "a line reads `port = 8080`"),
        ("port = true", "`port` in `.*config.toml` cannot be `True`", "1 to 65535, or `auto`"),
        ("host = 1", "`host` in `.*config.toml` cannot be `1`", "an address"),
        ("json_logs = 1", "`json_logs` in `.*config.toml` cannot be `1`", "`true` or `false`"),
        ("threads = 1.5", "`threads` in `.*config.toml` cannot be `1.5`", "a whole number, 1 or more"),
        ("system_prompt = ['x']", "`system_prompt` in `.*config.toml` cannot be", "text"),
    ],
)
def test_a_config_file_is_refused_with_a_hint(tmp_path: Path, line: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load({}, config_file(tmp_path, line))
    assert hint in refused.value.hint


def test_a_config_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no file `.*nowhere.toml`") as refused:
        load({}, {"FOX_CONFIG": str(tmp_path / "nowhere.toml")})
    assert "FOX_CONFIG" in refused.value.hint


def test_a_config_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read `.*`: is a directory"):
        load({}, {"FOX_CONFIG": str(tmp_path)})
    (tmp_path / "latin.toml").write_bytes(b'system_prompt = "\xe9"')
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load({}, {"FOX_CONFIG": str(tmp_path / "latin.toml")})


@pytest.mark.parametrize("flags", [{"type_v": "q4_0"}, {"type_kv": "q8_0"}])
def test_quantized_v_cells_need_flash_attention(flags: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="cannot be read with `--flash-attn off`"):
        load({"flash_attn": "off", **flags}, {})
    load({"flash_attn": "off", "type_k": "q8_0"}, {})
    load({"flash_attn": "off", "type_kv": "q8_0", "type_v": "f16"}, {})


def test_the_rooms_get_their_options() -> None:
    settings = load({"threads": "3", "max_context_len": "2048"}, {"FOX_SYSTEM_PROMPT": "Be brief."})
    assert settings.engine_options().threads == 3
    assert settings.engine_options().max_context_len == 2048
    assert settings.api_options().system_prompt == "Be brief."


def test_the_table_has_the_rooms_own_defaults() -> None:
    from fox.api import ApiOptions
    from fox.engine import EngineOptions

    settings = load({}, {})
    assert settings.engine_options() == EngineOptions()
    assert settings.api_options() == ApiOptions()


def test_a_server_option_has_a_field_and_a_field_has_a_row() -> None:
    fields = {field.name for field in dataclasses.fields(config.Settings)} - {"rooms"}
    assert fields == {row.name for row in OPTIONS if row.room == "server"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"OLLAMA_HOST": "0.0.0.0"}, {"host": "0.0.0.0", "port": 11434}),
        ({"OLLAMA_HOST": "10.0.0.1:9000"}, {"host": "10.0.0.1", "port": 9000}),
        ({"OLLAMA_HOST": ":9000"}, {"host": "127.0.0.1", "port": 9000}),
        ({"OLLAMA_HOST": "http://box"}, {"host": "box", "port": 80}),
        ({"OLLAMA_HOST": "https://box/path"}, {"host": "box", "port": 443}),
        ({"OLLAMA_HOST": "[::1]:9000"}, {"host": "::1", "port": 9000}),
        ({"OLLAMA_HOST": "::1"}, {"host": "::1", "port": 11434}),
        ({"OLLAMA_HOST": "box:99999"}, {"host": "box", "port": 11434}),
        ({"OLLAMA_HOST": " 'box:1' "}, {"host": "box", "port": 1}),
        ({"OLLAMA_HOST": "box:1", "FOX_HOST": "other", "FOX_PORT": "2"}, {"host": "other", "port": 2}),
        ({"OLLAMA_MODELS": "/srv/models"}, {"models_dir": Path("/srv/models")}),
        ({"OLLAMA_KEEP_ALIVE": "10m"}, {"keep_alive_secs": 600.0}),
        ({"OLLAMA_KEEP_ALIVE": "-1"}, {"keep_alive_secs": math.inf}),
        ({"OLLAMA_KEEP_ALIVE": "0"}, {"keep_alive_secs": 0.0}),
        ({"FOX_KEEP_ALIVE_SECS": "0"}, {"keep_alive_secs": math.inf}),
        ({"OLLAMA_NUM_PARALLEL": "4"}, {"max_batch_size": 4}),
        ({"OLLAMA_NUM_PARALLEL": "0"}, {"max_batch_size": 32}),
        ({"OLLAMA_MAX_LOADED_MODELS": "3"}, {"max_models": 3}),
        ({"OLLAMA_MAX_QUEUE": "7"}, {"max_queue_depth": 7}),
        ({"OLLAMA_ORIGINS": "https://a,app://*"}, {"cors_origins": "https://a,app://*"}),
        ({"OLLAMA_CONTEXT_LENGTH": "8192"}, {"context_len": 8192}),
        ({"OLLAMA_CONTEXT_LENGTH": "0"}, {"context_len": None}),
        ({"OLLAMA_KV_CACHE_TYPE": "q8_0"}, {"type_kv": "q8_0"}),
        ({"OLLAMA_FLASH_ATTENTION": "1"}, {"flash_attn": "on"}),
        ({"OLLAMA_FLASH_ATTENTION": "false"}, {"flash_attn": "auto"}),
        ({"OLLAMA_DEBUG": "2"}, {"log_level": "debug"}),
        ({"OLLAMA_GO_TEMPLATE": "0"}, {"go_template": "off"}),
        ({"OLLAMA_MODELS": "", "OLLAMA_HOST": "  "}, {"host": "127.0.0.1", "port": 8080}),
    ],
)
def test_ollamas_variables_count_below_foxs_own(
    variables: dict[str, str], expected: dict[str, object]
) -> None:
    settings = load({}, variables)
    found = {**vars(settings), **{k: v for room in settings.rooms.values() for k, v in room.items()}}
    assert {name: found[name] for name in expected} == expected


def test_ollamas_variables_beat_the_file(tmp_path: Path) -> None:
    env = config_file(tmp_path, "port = 1001\nmax_models = 9")
    assert load({}, env | {"OLLAMA_HOST": "box:1"}).port == 1


@pytest.mark.parametrize(
    ("name", "text"), [("OLLAMA_NUM_PARALLEL", "many"), ("OLLAMA_KEEP_ALIVE", "a while")]
)
def test_nonsense_in_ollamas_variables_is_told_by_their_name(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"`{name}` cannot be `{text}`"):
        load({}, {name: text})


def test_in_ollamas_place_its_port_and_folder_are_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load({"ollama": True}, {})
    assert (settings.port, settings.models_dir) == (11434, tmp_path / ".ollama/models")
    settings = load({"ollama": True, "port": "1"}, {"OLLAMA_MODELS": "/x", "OLLAMA_HOST": "0.0.0.0"})
    assert (settings.host, settings.port, settings.models_dir) == ("0.0.0.0", 1, Path("/x"))
    assert load({"ollama": True, "port": "8080"}, {}).port == 8080
