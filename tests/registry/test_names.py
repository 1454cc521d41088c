from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fox.errors import InvalidRequest
from fox.registry.names import InvalidName, ModelName, source_selector

PART = "a" * 80
HOST = "h" * 350


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("llama3.2", ("registry.ollama.ai", "library", "llama3.2", "latest")),
        ("  llama3.2:1b\n", ("registry.ollama.ai", "library", "llama3.2", "1b")),
        ("me/model", ("registry.ollama.ai", "me", "model", "latest")),
        ("host/me/model", ("host", "me", "model", "latest")),
        ("host:5000/me/model", ("host:5000", "me", "model", "latest")),
        ("host:5000/me/model:v1", ("host:5000", "me", "model", "v1")),
        ("https://host:5000/me/model:v1", ("host:5000", "me", "model", "v1")),
        ("hf.co/org/My.Repo-GGUF:Q4_K_M", ("hf.co", "org", "My.Repo-GGUF", "Q4_K_M")),
        ("_why/_the/_lucky:_stiff", ("_why", "_the", "_lucky", "_stiff")),
        ("h/n/m:t", ("h", "n", "m", "t")),
        (f"{HOST}/{PART}/{PART}:{PART}", (HOST, PART, PART, PART)),
    ],
)
def test_a_name_is_read_from_the_right_and_filled_in(text: str, parts: tuple[str, ...]) -> None:
    assert ModelName.parse(text).parts == parts


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "^",
        ":",
        "m:",
        ":t",
        "/",
        "//",
        "/n/m",
        "//m",
        "h//m",
        "n/",
        "a/b/c/d",
        "..",
        "../m",
        "n/..",
        "../../m",
        "h/../m",
        "m:..",
        "m:../../etc/passwd",
        "a..b",
        "h..x/n/m",
        ".m",
        "-m",
        "n/-m",
        "-n/m",
        "-h/n/m",
        "m:-t",
        "m:.t",
        "n.x/m",
        "hf.co/my.org/repo:Q4_0",
        "h/name:space/m:t",
        "a:b:c",
        "n\\m",
        "m\x00",
        "m\x1b[0m",
        "a b",
        "a\nb",
        "café",
        "m@sha256:123",
        "m@sha256-" + "1" * 64,
        "@digest",
        "https://m",
        "https://n/m",
        "https://https://h/n/m",
        "1://h/n/m",
        "a" * 81,
        "m:" + "a" * 81,
        "a" * 81 + "/m",
        "h" * 351 + "/n/m",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidName) as caught:
        ModelName.parse(text)
    assert str(caught.value) == "invalid model name"
    assert (caught.value.code, caught.value.param) == ("invalid_name", "model")


@pytest.mark.parametrize(
    ("text", "shortest"),
    [
        ("registry.ollama.ai/library/model:latest", "model:latest"),
        ("Registry.Ollama.AI/Library/Model", "Model:latest"),
        ("registry.ollama.ai/me/model:tag", "me/model:tag"),
        ("host/me/model:tag", "host/me/model:tag"),
        ("host/library/model:tag", "host/library/model:tag"),
    ],
)
def test_the_shortest_name_drops_defaults_and_keeps_the_tag(text: str, shortest: str) -> None:
    assert ModelName.parse(text).shortest == shortest


def test_the_full_name_says_all_but_the_scheme() -> None:
    assert ModelName.parse("model").full == "registry.ollama.ai/library/model:latest"
    assert ModelName.parse("http://h:1/n/m").full == "h:1/n/m:latest"


def test_the_scheme_is_kept_and_names_nothing() -> None:
    plain, secure = ModelName.parse("http://h/n/m"), ModelName.parse("h/n/m")
    assert (plain.scheme, secure.scheme) == ("http", "https")
    assert plain == secure


def test_case_is_kept_and_tells_no_models_apart() -> None:
    upper, lower = ModelName.parse("Mistral:7B"), ModelName.parse("mistral:7b")
    assert upper.model == "Mistral"
    assert upper != lower
    assert upper.same_as(lower)
    assert not upper.same_as(ModelName.parse("mistral:8b"))


@given(st.text(alphabet="aZ0_-.:/@ \\\n", max_size=30) | st.text())
def test_a_name_that_is_read_stays_in_its_folders_and_reads_back(text: str) -> None:
    try:
        name = ModelName.parse(text)
    except InvalidName:
        return
    assert not any(set(part) & set("/\\@\0 ") or ".." in part or not part for part in name.parts)
    assert ModelName.parse(name.full) == ModelName.parse(name.shortest) == name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpt-oss:20b:cloud", ("gpt-oss:20b", "cloud")),
        ("gpt-oss:20b-cloud", ("gpt-oss:20b", "cloud")),
        ("gpt-oss:20B-CLOUD", ("gpt-oss:20B", "cloud")),
        ("qwen3:cloud", ("qwen3", "cloud")),
        ("qwen3: Cloud ", ("qwen3", "cloud")),
        ("qwen3:8b:local", ("qwen3:8b", "local")),
        ("localhost:11434/library/foo:cloud", ("localhost:11434/library/foo", "cloud")),
        ("llama3.2", ("llama3.2", None)),
        (" llama3.2:1b ", ("llama3.2:1b", None)),
        ("my-cloud", ("my-cloud", None)),
        ("my-cloud-model", ("my-cloud-model", None)),
        ("foo:bar-cloud/baz", ("foo:bar-cloud/baz", None)),
        ("", ("", None)),
    ],
)
def test_a_source_is_told_from_the_name(text: str, found: tuple[str, str | None]) -> None:
    assert source_selector(text) == found


@pytest.mark.parametrize("text", ["x:cloud:local", "x:local:cloud", "x:1b-cloud:local", "x:cloud:cloud"])
def test_two_sources_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        source_selector(text)
    assert str(caught.value) == f'use either :local or :cloud, not both: "{text}"'
    assert caught.value.param == "model"
