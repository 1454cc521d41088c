"""`fox list` and `fox show` as real processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("no_server")


def fox(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fox", *words], capture_output=True, text=True, check=False)


def test_list_shows_the_starter_and_what_lies_in_the_models_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"x" * 1500)
    monkeypatch.setenv("FOX_MODELS_DIR", str(tmp_path))
    lines = fox("list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "ID", "SIZE", "MODIFIED"]
    assert re.fullmatch(r"mine:latest +[0-9a-f]{12} +1\.5 KB +.*second.* ago", lines[1])
    assert lines[2].split()[0] == "smollm2:135m"


def test_list_takes_a_prefix_in_any_case_and_ls_is_its_other_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"x")
    monkeypatch.setenv("FOX_MODELS_DIR", str(tmp_path))
    models = json.loads(fox("ls", "--json", "MI").stdout)["models"]
    assert [model["name"] for model in models] == ["mine:latest"]


def test_list_of_an_empty_folder_gives_a_hint_on_stderr(tmp_path: Path) -> None:
    answer = fox("list", "--path", str(tmp_path))
    assert (answer.stdout, answer.returncode) == ("NAME    ID    SIZE    MODIFIED\n", 0)
    assert answer.stderr.startswith("hint:")


def test_list_in_process_imports_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv = ['fox', 'list']\n"
        "from fox.cli import run_group\n"
        "run_group()\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "http.client", "rich", "starlette", "pydantic", "msgspec", "jinja2", "llama_cpp"}
    assert not set(done.stderr.split()) & heavy


def test_show_tells_the_starter_in_ollamas_sections() -> None:
    lines = fox("show", "smollm2").stdout.splitlines()
    assert lines[:4] == [
        "  Model",
        "    architecture        llama",
        "    parameters          134.52M",
        "    context length      8192",
    ]
    assert lines[6:9] == ["", "  Capabilities", "    completion"]


def test_show_of_a_folders_model_reads_its_header(tmp_path: Path, starter_path: Path) -> None:
    shutil.copy(starter_path, tmp_path / "copy.gguf")
    answer = fox("show", "copy", "--path", str(tmp_path))
    for fact in ("llama", "Q4_1", "8192", "chat template", "<|im_start|>", "MB"):
        assert fact in answer.stdout


def test_show_takes_a_path_and_prints_json(tmp_path: Path, starter_path: Path) -> None:
    path = tmp_path / "copy.gguf"
    shutil.copy(starter_path, path)
    facts = json.loads(fox("show", str(path), "--json").stdout)
    assert (facts["architecture"], facts["context_length"], facts["path"]) == ("llama", 8192, str(path))


@pytest.mark.parametrize("content", [b"", b"not a model", b"GGUF"])
def test_show_says_why_a_file_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    answer = fox("show", str(path))
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: cannot read")
    assert "hint:" in answer.stderr


def test_show_of_an_unknown_name_is_one_line_and_a_hint() -> None:
    answer = fox("show", "nobody")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.splitlines()[0] == "error: model 'nobody:latest' not found"
