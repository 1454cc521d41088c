"""Every option of the server, in one table: flag, `FOX_...` name, config key, type, default and help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fox.config.kinds import (
    COUNT,
    ENGINE,
    FRACTION,
    HOST,
    KEEP_ALIVE,
    KV_TYPE,
    LEVEL,
    ON_OFF,
    PART,
    PATH,
    PORT,
    SECONDS,
    SWITCH,
    TEXT,
    Kind,
    one_of,
    whole_from,
)
from fox.errors import FoxError

DEFAULT_PORT = 8080

Room = Literal["server", "registry", "engine", "api"]


class ConfigError(FoxError):
    """A setting that cannot be used. `args`: what is wrong and where it came from, a hint."""

    code = "invalid_config"

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def hint(self) -> str:
        return str(self.args[1])


@dataclass(frozen=True)
class Option:
    """One option. `default`: as a person would write it, or None. `on_run`: a flag of `fox run` too. `also`: names that
    mean the same, on every way in."""

    name: str
    kind: Kind
    default: object
    help: str
    room: Room = "server"
    on_run: bool = False
    also: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return flag(self.name)

    @property
    def env(self) -> str:
        return env(self.name)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.also)

    def read(self, value: object, source: str) -> Any:
        """The value as the rooms want it. Raises ConfigError that names `source`."""
        try:
            return self.kind.read(value)
        except ValueError:
            raise ConfigError(f"{source} cannot be `{value}`", f"give {self.kind.expects}") from None


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def env(name: str) -> str:
    return "FOX_" + name.upper()


OPTIONS: tuple[Option, ...] = (
    Option("host", HOST, "127.0.0.1", "address to listen on"),
    Option("port", PORT, DEFAULT_PORT, "port to listen on; `auto`: 8080 to 8180, then any free one"),
    Option("model_path", PATH, None, "GGUF to load at start", on_run=True),
    Option("models_dir", PATH, "~/.cache/ferrumox/models", "where models are kept", on_run=True),
    Option("ollama", SWITCH, False, "in Ollama's place: port 11434, models in `~/.ollama/models`"),
    Option("alias_file", PATH, "~/.config/ferrumox/aliases.toml", "other names of models", on_run=True),
    Option("engine", ENGINE, "llama", "`echo` speaks the prompt back: for tests", on_run=True),
    Option("json_logs", SWITCH, False, "write logs as JSON, one object a line"),
    Option("log_level", LEVEL, "info", "least level that is logged"),
    Option("drain_secs", SECONDS, 10, "how long open answers may go on after SIGTERM or Ctrl-C"),
    Option("max_context_len", COUNT, None, "tokens of prompt and answer [default: auto]", "engine", True),
    Option(
        "context_len",
        COUNT,
        None,
        "tokens a model is loaded with until a request asks for more [default: all it may have]",
        "registry",
    ),
    Option(
        "keep_alive_secs",
        KEEP_ALIVE,
        300,
        "how long a model stays in memory that nobody uses; 0: for ever",
        "registry",
    ),
    Option("max_models", whole_from(0), 0, "models in memory at once; 0: no bound", "registry"),
    Option("max_batch_size", COUNT, 32, "sequences decoded together", "engine"),
    Option("max_queue_depth", whole_from(0), 512, "requests that may wait; 0: no bound", "engine"),
    Option("max_prefill_chunk", COUNT, 512, "prompt tokens a step", "engine"),
    Option(
        "kv_layout",
        one_of("auto", "lanes", "pool"),
        "auto",
        "KV memory: a lane a sequence, or one pool",
        "engine",
    ),
    Option(
        "kv_host_mb",
        whole_from(0),
        None,
        "MiB of RAM for KV states [default: auto]",
        "engine",
        also=("cache_ram",),
    ),
    Option("swap_fraction", PART, None, "the same as a part of the GPUs' memory", "engine"),
    Option("kv_dir", PATH, None, "folder for KV states that survive a restart", "engine"),
    Option("kv_disk_mb", whole_from(0), 4096, "MiB that `--kv-dir` may take", "engine"),
    Option(
        "prefix_cache",
        ON_OFF,
        "on",
        "reuse prefixes that are computed already",
        "engine",
        also=("kv_reuse",),
    ),
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
    Option("flash_attn", one_of("auto", "on", "off"), "auto", "flash attention", "engine"),
    Option("swa_full", SWITCH, False, "keep what sliding windows have left behind", "engine"),
    Option("gpu_memory_fraction", FRACTION, 0.85, "part of the free memory that KV cells may take", "engine"),
    Option(
        "step_target_ms",
        COUNT,
        100,
        "what a step should take while somebody reads along; with prompts about twice that",
        "engine",
    ),
    Option("speculative", SWITCH, False, "guess tokens by n-gram lookup, and check them", "engine"),
    Option("spec_ngram", COUNT, 2, "tokens that a lookup compares", "engine"),
    Option("spec_draft_len", COUNT, 4, "tokens that a lookup guesses", "engine"),
    Option("draft_model", PATH, None, "small GGUF of the same vocabulary that guesses tokens", "engine"),
    Option("context_shift", SWITCH, False, "roll a full context's window instead of ending", "engine"),
    Option("context_keep", whole_from(0), 0, "first tokens that a rolling window keeps", "engine"),
    Option("threads", COUNT, None, "threads to compute with [default: physical cores]", "engine", True),
    Option("system_prompt", TEXT, "", "said first in a conversation that has no system message", "api", True),
    Option(
        "reasoning_format",
        one_of("separate", "none"),
        "separate",
        "thoughts as `reasoning_content`, or left in the text",
        "api",
    ),
    Option(
        "tool_call_parser", TEXT, "", "family of the models' tool calls [default: by the template]", "api"
    ),
    Option(
        "go_template",
        one_of("auto", "on", "off"),
        "auto",
        "a model's Go TEMPLATE: unless a request needs what it lacks, always, or never",
        "api",
    ),
    Option(
        "cors_origins",
        TEXT,
        "",
        "web pages that may ask, beside local ones: origins with commas between them, `*` in them for anything",
        "api",
    ),
    Option("ollama_version", TEXT, "0.35.0", "the version of Ollama that clients are told", "api"),
    Option("max_body_mb", COUNT, 8, "largest request that is read, in MiB", "api"),
)
