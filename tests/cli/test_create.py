"""`fox create`, against a server that records what it is asked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.fake_ollama import Answer, Ollama, Said, ollama
from tests.cli.processes import PATIENCE_S

STEPS = [
    {"status": "parsing GGUF"},
    {"status": "quantizing F16 model to Q4_K_M", "digest": "0000000000000000000", "total": 2, "completed": 1},
    {"status": "quantizing F16 model to Q4_K_M", "digest": "0000000000000000000", "total": 2, "completed": 2},
    {"status": "writing manifest"},
    {"status": "success"},
]
CREATING: dict[str, Answer] = {"POST /api/create": Said(STEPS)}
WEIGHTS = b"GGUF weights"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def create(server: Ollama, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fox", "create", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | server.env | {"FOX_MODELS_DIR": str(folder / "store")},
        timeout=PATIENCE_S,
        check=False,
    )


def body(server: Ollama) -> object:
    (one,) = server.bodies("/api/create")
    return one


def test_a_modelfile_becomes_one_request(tmp_path: Path) -> None:
    (tmp_path / "Modelfile").write_text(
        "FROM llama3.2:1b\n"
        "SYSTEM be brief\n"
        "TEMPLATE {{ .Prompt }}\n"
        "PARAMETER temperature 0.5\nPARAMETER stop a\nPARAMETER stop b\n"
        "LICENSE one\nLICENSE two\n"
        "MESSAGE user hi\nMESSAGE assistant hello\n"
        "REQUIRES 0.14.0\n"
    )
    with ollama(CREATING) as server:
        done = create(server, tmp_path, "mine")
    assert (done.returncode, done.stdout) == (0, "")
    assert server.lines == ["HEAD /", "POST /api/create"]
    assert body(server) == {
        "model": "mine",
        "from": "llama3.2:1b",
        "system": "be brief",
        "template": "{{ .Prompt }}",
        "parameters": {"temperature": 0.5, "stop": ["a", "b"]},
        "license": ["one", "two"],
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
        "requires": "0.14.0",
    }


def test_each_step_is_one_line_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "Modelfile").write_text("FROM m")
    with ollama(CREATING) as server:
        done = create(server, tmp_path, "mine")
    assert done.stderr.splitlines() == [
        "parsing GGUF",
        "quantizing F16 model to Q4_K_M",
        "writing manifest",
        "success",
    ]


def test_files_are_sent_once_and_named_by_their_digest(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "w.gguf").write_bytes(WEIGHTS)
    (tmp_path / "here" / "lora.gguf").write_bytes(b"lora")
    file = tmp_path / "here" / "My.Modelfile"
    file.write_text("FROM ./w.gguf\nADAPTER lora.gguf\n")
    with ollama(CREATING) as server:
        assert create(server, tmp_path, "mine", "-f", "here/My.Modelfile", "-q", "q4_K_M").returncode == 0
        first = list(server.lines)
        create(server, tmp_path, "mine", "-f", str(file))
    blobs = [f"/api/blobs/{digest(data)}" for data in (WEIGHTS, b"lora")]
    expected = [f"{method} {blob}" for blob in blobs for method in ("HEAD", "HEAD", "POST")]
    assert first == ["HEAD /", *expected, "POST /api/create"]
    assert server.lines[len(first) :] == ["HEAD /", *(f"HEAD {blob}" for blob in blobs), "POST /api/create"]
    assert server.bodies("/api/create")[0] == {
        "model": "mine",
        "files": {"w.gguf": digest(WEIGHTS)},
        "adapters": {"lora.gguf": digest(b"lora")},
        "quantize": "q4_K_M",
    }
    assert not (tmp_path / "store" / "blobs").exists()  # the server did not see the link


def test_a_file_that_the_server_sees_linked_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "w.gguf").write_bytes(WEIGHTS)
    (tmp_path / "Modelfile").write_text("FROM w.gguf")
    blob = tmp_path / "store" / "blobs" / digest(WEIGHTS).replace(":", "-")

    class Sees(Ollama):
        def _blob(self, asked: object) -> Said:
            return Said(status=200 if blob.exists() else 404)

    with ollama(CREATING, Sees) as server:
        assert create(server, tmp_path, "mine").returncode == 0
    assert server.lines == ["HEAD /", *[f"HEAD /api/blobs/{digest(WEIGHTS)}"] * 2, "POST /api/create"]
    assert blob.samefile(tmp_path / "w.gguf")


def test_without_a_modelfile_the_folders_first_gguf_is_taken(tmp_path: Path) -> None:
    for name in ("b.gguf", "a.gguf"):
        (tmp_path / name).write_bytes(name.encode())
    with ollama(CREATING) as server:
        assert create(server, tmp_path, "mine").returncode == 0
    assert body(server) == {"model": "mine", "files": {"a.gguf": digest(b"a.gguf")}}


def test_a_home_is_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "w.gguf").write_bytes(WEIGHTS)
    (tmp_path / "Modelfile").write_text("FROM ~/w.gguf")
    with ollama(CREATING) as server:
        assert create(server, tmp_path, "mine").returncode == 0
    assert body(server) == {"model": "mine", "files": {"w.gguf": digest(WEIGHTS)}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "error: no GGUF in `{folder}`"),
        ("SYSTEM hi\n", "error: no FROM line"),
        ("FORM m\n", "error: (line 1): command must be one of"),
        ("FROM ./absent.gguf\n", "error: no file `./absent.gguf`"),
        ("FROM m\nADAPTER lora\n", "error: no file `lora`"),
        ("FROM m\nPARAMETER nope 1\n", "error: unknown parameter 'nope'"),
    ],
)
def test_a_modelfile_that_makes_no_sense_is_refused(tmp_path: Path, text: str | None, line: str) -> None:
    if text is not None:
        (tmp_path / "Modelfile").write_text(text)
    with ollama(CREATING) as server:
        done = create(server, tmp_path, "mine")
    assert done.returncode == 1
    assert done.stderr.startswith(line.format(folder=tmp_path))
    assert "POST /api/create" not in server.lines


def test_a_modelfile_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with ollama(CREATING) as server:
        done = create(server, tmp_path, "mine", "-f", "nope")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "error: no file `nope`")


def test_tensors_in_another_form_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with ollama(CREATING) as server:
        done = create(server, tmp_path, "mine")
    assert done.returncode == 1
    assert "is not in GGUF form: *.safetensors" in done.stderr
    assert "hint: llama.cpp's `convert_hf_to_gguf.py` makes a GGUF of it" in done.stderr


def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.gguf").write_bytes(WEIGHTS)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "w.gguf").symlink_to(tmp_path / "outside.gguf")
    with ollama(CREATING) as server:
        done = create(server, inside, "mine")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, f"error: insecure path: {inside}/w.gguf")


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (Said({"error": "invalid model name"}, 400), "error: invalid model name"),
        (Said([{"status": "parsing GGUF"}, {"error": "unknown type"}]), "error: unknown type"),
        (Said([{"status": "parsing GGUF"}]), "error: the server ended before the model was made"),
        (Said(b"\n\n"), "error: the server ended before the model was made"),
    ],
)
def test_what_goes_wrong_on_the_server_is_told(tmp_path: Path, said: Said, line: str) -> None:
    (tmp_path / "Modelfile").write_text("FROM m")
    with ollama({"POST /api/create": said}) as server:
        done = create(server, tmp_path, "mine")
    assert done.returncode == 1
    assert line in done.stderr.splitlines()


def test_a_parameter_that_means_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "Modelfile").write_text("FROM m\nPARAMETER mirostat 1\n")
    with ollama(CREATING) as server:
        done = create(server, tmp_path, "mine")
    assert done.stderr.splitlines()[0] == "warning: the parameter `mirostat` means nothing any more"
    assert body(server) == {"model": "mine", "from": "m"}
