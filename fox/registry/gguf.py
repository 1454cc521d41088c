"""A GGUF's header, read in milliseconds: metadata without its long arrays, and what the tensors weigh.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little endian.
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fox.errors import FoxError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
LONGEST_ARRAY = 64  # longer ones (vocabularies) are skipped: their length is kept
GAP_KEYS = ("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id")
GAP_TOKENS = (
    b"<|fim_prefix|>",
    b"<fim-prefix>",
    b"<fim_prefix>",
    b"<|code_prefix|>",
    b"<PRE>",
    "\u2581<PRE>".encode(),
)
STRING, ARRAY = 8, 9
SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
SMALLEST_ENTRY_BYTES = 12  # a key's length and a type

# ggml's tensor types: name, values in a block, bytes of a block
TENSOR_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}
# llama.cpp's general.file_type
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
}  # fmt: skip


class GGUFError(FoxError):
    """The file is no GGUF that can be used. `args`: why."""

    code = "invalid_gguf"


@dataclass(frozen=True)
class Skipped:
    """An array too long to keep: how many values it has."""

    count: int


@dataclass(frozen=True)
class Tensor:
    """`shape` as ggml has it (the fastest dimension first)."""

    name: str
    shape: tuple[int, ...]
    type: str
    size_bytes: int

    @property
    def values(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count


@dataclass(frozen=True)
class Header:
    """What a GGUF says of itself."""

    metadata: dict[str, Any]
    tensors: tuple[Tensor, ...]
    fim: bool = False
    """The vocabulary can mark a gap."""

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    @property
    def chat_template(self) -> str | None:
        template = self.metadata.get("tokenizer.chat_template")
        return template if isinstance(template, str) else None

    @cached_property
    def parameters(self) -> int:
        return sum(tensor.values for tensor in self.tensors)

    @property
    def size_name(self) -> str:
        """134515008 parameters are `134.52M`, 7615616512 are `7.6B`."""
        count = self.parameters
        if count >= 1e9:
            return f"{count / 1e9:.1f}B"
        return f"{count / 1e6:.2f}M" if count >= 1e6 else f"{count / 1e3:.0f}K"

    @property
    def quantization(self) -> str:
        """The name of the file's type; where it gives none, the type that holds most values."""
        named = FILE_TYPES.get(self.metadata.get("general.file_type", -1))
        if named or not self.tensors:
            return named or ""
        weights: Counter[str] = Counter()
        for tensor in self.tensors:
            weights[tensor.type] += tensor.values
        return weights.most_common(1)[0][0]

    def of_architecture(self, key: str) -> Any:
        """A value under the architecture's own name, such as `context_length`; None where it is not given."""
        return self.metadata.get(f"{self.architecture}.{key}")


def read_header(path: Path, longest_array: int = LONGEST_ARRAY) -> Header:
    """The header of `path`; arrays that are longer than that are Skipped. Raises GGUFError: no GGUF, damaged, or
    shorter than its tensors; OSError as open does."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < len(MAGIC):
            raise GGUFError("the file is too short for a GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data, size, longest_array).header()


class _Reader:
    """A cursor over the mapped file; every read is checked against its end."""

    def __init__(self, data: mmap.mmap, size: int, longest_array: int) -> None:
        self._longest_array = longest_array
        self._data = data
        self._size = size
        self._at = 0
        self._end = 0

    def header(self) -> Header:
        if self._take(4) != MAGIC:
            raise GGUFError("it is not a GGUF: the file does not begin with `GGUF`")
        version = self._number("<I")
        if version not in VERSIONS:
            big = int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS
            raise GGUFError(
                "big-endian GGUFs cannot be used" if big else f"GGUF version {version} is not known"
            )
        tensors, entries = self._number("<Q"), self._number("<Q")
        if (tensors + entries) * SMALLEST_ENTRY_BYTES > self._size:
            raise GGUFError("the header counts more entries than the file can hold")
        metadata = {self._string(): self._value(self._number("<I")) for _ in range(entries)}
        fim = any(key in metadata for key in GAP_KEYS) or any(map(self._holds, GAP_TOKENS))
        header = Header(metadata, tuple(self._tensor() for _ in range(tensors)), fim)
        self._check_data(header)
        return header

    def _holds(self, text: bytes) -> bool:
        """Whether one of the strings so far is this."""
        return self._data.find(struct.pack("<Q", len(text)) + text, 0, self._at) >= 0

    def _tensor(self) -> Tensor:
        name, dimensions = self._string(), self._number("<I")
        if dimensions > 4:
            raise GGUFError(f"tensor `{name}` has {dimensions} dimensions")
        shape = tuple(self._number("<Q") for _ in range(dimensions))
        number, offset = self._number("<I"), self._number("<Q")
        kind, block, block_bytes = TENSOR_TYPES.get(number, (f"type {number}", 1, 0))
        tensor = Tensor(name, shape, kind, 0)
        self._end = max(self._end, offset + tensor.values // block * block_bytes)
        return Tensor(name, shape, kind, tensor.values // block * block_bytes)

    def _check_data(self, header: Header) -> None:
        alignment = header.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise GGUFError(f"the alignment `{alignment}` makes no sense")
        if header.tensors:
            start = -(-self._at // alignment) * alignment
            if (missing := start + self._end - self._size) > 0:
                raise GGUFError(f"the file is incomplete: {missing} bytes are missing")

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            return self._array()
        return self._number(self._format(kind))

    def _array(self) -> Any:
        kind, count = self._number("<I"), self._number("<Q")
        if count > self._size:
            raise GGUFError("an array is longer than the file")
        if count <= self._longest_array and kind != ARRAY:
            return [self._value(kind) for _ in range(count)]
        if kind == STRING:
            for _ in range(count):
                self._skip(self._number("<Q"))
        elif kind == ARRAY:
            raise GGUFError("arrays of arrays are not known")
        else:
            self._skip(count * struct.calcsize(self._format(kind)))
        return Skipped(count)

    @staticmethod
    def _format(kind: int) -> str:
        if kind not in SCALARS:
            raise GGUFError(f"a value has the unknown type {kind}")
        return SCALARS[kind]

    def _string(self) -> str:
        return self._take(self._number("<Q")).decode(errors="replace")

    def _number(self, form: str) -> Any:
        try:
            (value,) = struct.unpack_from(form, self._data, self._at)
        except struct.error:
            raise GGUFError("the header ends too early") from None
        self._at += struct.calcsize(form)
        return value

    def _take(self, count: int) -> bytes:
        at = self._at
        self._skip(count)
        return self._data[at : at + count]

    def _skip(self, count: int) -> None:
        if count > self._size - self._at:
            raise GGUFError("the header ends too early")
        self._at += count
