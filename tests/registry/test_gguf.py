from __future__ import annotations

import struct
import time
from contextlib import suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fox.registry.gguf import GGUFError, Skipped, read_header


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_chat_template("{{ messages }}")
    writer.add_token_list([f"t{i}" for i in range(200)])
    writer.add_token_types([1] * 200)
    writer.add_array("small", [1, 2, 3])
    writer.add_tensor("a", np.zeros((4, 8), np.float32))
    writer.add_tensor("b", np.zeros((16,), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_header_says_what_the_writer_wrote(small: Path) -> None:
    header = read_header(small)
    assert header.architecture == "llama"
    assert header.of_architecture("context_length") == 2048
    assert header.chat_template == "{{ messages }}"
    assert header.metadata["tokenizer.ggml.tokens"] == Skipped(200)
    assert header.metadata["tokenizer.ggml.token_type"] == Skipped(200)
    assert header.metadata["small"] == [1, 2, 3]
    assert [(t.name, t.shape, t.type, t.size_bytes) for t in header.tensors] == [
        ("a", (8, 4), "F32", 128),
        ("b", (16,), "F16", 32),
    ]
    assert (header.parameters, header.quantization) == (48, "F32")


def test_the_starters_header_is_read_at_once(starter_path: Path) -> None:
    began = time.process_time()
    header = read_header(starter_path)
    assert time.process_time() - began < 0.5
    assert (header.architecture, header.quantization) == ("llama", "Q4_1")
    assert 130e6 < header.parameters < 170e6
    assert header.chat_template


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "too short"),
        (b"GGU", "too short"),
        (b"nope and more", "does not begin with"),
        (b"GGUF", "ends too early"),
        (b"GGUF" + struct.pack("<I", 1), "version 1"),
        (b"GGUF" + struct.pack(">I", 3), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "more entries"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62), "ends too early"),
    ],
)
def test_what_is_no_gguf_is_refused_with_the_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(GGUFError, match=reason):
        read_header(path)


def test_a_cut_file_says_how_much_is_missing(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(small.read_bytes()[:-40])
    with pytest.raises(GGUFError, match=r"incomplete: \d+ bytes are missing"):
        read_header(path)


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_damage_raises_nothing_else(small: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(small.read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(GGUFError):
        read_header(path)
