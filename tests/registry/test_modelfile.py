from __future__ import annotations

import codecs
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fox.registry.modelfile import (
    BAD_COMMAND,
    BAD_REQUIRES,
    BAD_ROLE,
    Modelfile,
    ModelfileError,
    read,
    written,
)

WHOLE = '''
# made by hand
FROM llama3.2
from ./projector.gguf
ADAPTER ./a.gguf
ADAPTER ./b.gguf
DRAFT ./d.gguf
LICENSE MIT
LICENSE """
Do what
you "like".
"""
TEMPLATE """{{ .System }}

{{ .Prompt }}"""\x20\x20
SYSTEM forgotten
SYSTEM You are # not a comment
PARAMETER temperature 0.5
PARAMETER temperature 0.7
PARAMETER num_ctx 4096
PARAMETER use_mmap false
PARAMETER stop "a "
PARAMETER stop b
PARAMETER mirostat 2
PARAMETER mirostat 1
PARAMETER low_vram true
MESSAGE user Hey: there!
MESSAGE assistant "Hello"
RENDERER qwen3-coder
PARSER qwen3
REQUIRES v0.14.0
'''
TEXT = st.text() | st.text(alphabet='a" \n\r\t#\u200d', max_size=8)


def of(text: str, **fields: Any) -> Modelfile:
    return Modelfile((text,), **fields)


def test_every_command_is_read() -> None:
    assert read(WHOLE) == Modelfile(
        bases=("llama3.2", "./projector.gguf"),
        adapters=("./a.gguf", "./b.gguf"),
        drafts=("./d.gguf",),
        licenses=("MIT", '\nDo what\nyou "like".\n'),
        template="{{ .System }}\n\n{{ .Prompt }}",
        system="You are # not a comment",
        parameters={"temperature": 0.7, "num_ctx": 4096, "use_mmap": False, "stop": ["a ", "b"]},
        messages=(("user", "Hey: there!"), ("assistant", "Hello")),
        renderer="qwen3-coder",
        parser="qwen3",
        requires="0.14.0",
        deprecated=("mirostat", "low_vram"),
    )
    assert read(WHOLE).base == "llama3.2"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("SYSTEM hello", "hello"),
        ("SYSTEM \t hello \t ", "hello"),
        ("SYSTEM hello\r\n", "hello"),
        ("SYSTEM hello\r", "hello"),
        ("SYSTEM ", ""),
        ("SYSTEM \n", ""),
        ('SYSTEM ""', ""),
        ('SYSTEM """"""', ""),
        ('SYSTEM "  hello  "', "  hello  "),
        ('SYSTEM "a\r\nb"\n', "a\r\nb"),
        ('SYSTEM "a" b\nc"', 'a" b\nc'),
        ('SYSTEM """a""b"""', 'a""b'),
        ('SYSTEM """say "hi""""', 'say "hi"'),
        ('SYSTEM """a """ b"""', 'a """ b'),
        ('SYSTEM """\na\n"""  \n', "\na\n"),
        ('SYSTEM """a\n# b\nFROM c"""', "a\n# b\nFROM c"),
        ('SYSTEM say "hi"', 'say "hi"'),
        ("SYSTEM 'hello'", "'hello'"),
        ("SYSTEM 👩\u200d🚀 \x00", "👩\u200d🚀 \x00"),
        ("SYSTEM \xa0hello\u3000", "hello"),
        ("\n \t# c\n  sYsTeM hello", "hello"),
        ("SYSTEM hello\n#", "hello"),
    ],
)
def test_a_value_ends_with_its_line_or_with_a_quote_that_ends_a_line(text: str, value: str) -> None:
    assert read(f"FROM x\n{text}") == of("x", system=value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PARAMETER   num_ctx   1", of("x", parameters={"num_ctx": 1})),
        ("PARAMETER\tstop\t### User:", of("x", parameters={"stop": ["### User:"]})),
        ('PARAMETER stop """a\n"""', of("x", parameters={"stop": ["a\n"]})),
        ("MESSAGE   user   hi", of("x", messages=(("user", "hi"),))),
        ("MESSAGE system ", of("x", messages=(("system", ""),))),
        ("REQUIRES 1", of("x", requires="1")),
        ("REQUIRES 0.14.0-rc.1+build.01", of("x", requires="0.14.0-rc.1+build.01")),
    ],
)
def test_a_parameter_has_a_name_and_a_message_a_role(text: str, found: Modelfile) -> None:
    assert read(f"FROM x\n{text}\n") == found


@pytest.mark.parametrize(
    "data",
    [
        "\ufeffFROM é\n",
        "FROM é\n".encode(),
        codecs.BOM_UTF8 + "FROM é\n".encode(),
        codecs.BOM_UTF16_LE + "FROM é\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "FROM é\n".encode("utf-16-be"),
    ],
)
def test_the_encoding_is_told_by_its_mark(data: bytes | str) -> None:
    assert read(data) == of("é")


def test_bytes_that_are_no_text_read_as_replaced() -> None:
    assert read(b"FROM a\xff") == of("a\ufffd")
    assert read(codecs.BOM_UTF16_LE + b"F\0R\0O\0M\0 \0a\0b") == of("a\ufffd")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no FROM line"),
        ("# FROM x", "no FROM line"),
        ("SYSTEM x", "no FROM line"),
        ("FROM \n", "no FROM line"),
        ('FROM ""', "no FROM line"),
        ("FROM x\nFROM \n", "no FROM line"),
        ("FROM", "unexpected EOF"),
        ("FROM x\nBAD", "unexpected EOF"),
        ("FROM\n", f"(line 1): {BAD_COMMAND}"),
        ("FROM x\n\nBADCOMMAND a b", f"(line 3): {BAD_COMMAND}"),
        ("FROM x\r\n\r\nBAD a\r\n", f"(line 3): {BAD_COMMAND}"),
        ("FROM x\rBAD\r", f"(line 2): {BAD_COMMAND}"),
        ("FROM: x", f"(line 1): {BAD_COMMAND}"),
        ('"FROM x', f"(line 1): {BAD_COMMAND}"),
        ("ＦROM x", f"(line 1): {BAD_COMMAND}"),
        ("FROM x\nMESSAGE badguy hi", f"(line 2): {BAD_ROLE}"),
        ("FROM x\nMESSAGE User hi", f"(line 2): {BAD_ROLE}"),
        ("FROM x\nMESSAGE user", "unexpected EOF"),
        ("FROM x\nMESSAGE user\n", "unexpected EOF: user"),
        ("FROM x\nMESSAGE us-er hi", "unexpected EOF: us"),
        ("FROM x\nPARAMETER", "unexpected EOF"),
        ("FROM x\nPARAMETER num_ctx", "unexpected EOF"),
        ("FROM x\nPARAMETER num_ctx\n", "unexpected EOF: num_ctx"),
        ("FROM x\nPARAMETER x 1", "unknown parameter 'x'"),
        ("FROM x\nPARAMETER num_ctx many", "invalid int value [many]"),
        ('FROM x\nSYSTEM "', "unexpected EOF"),
        ('FROM x\nSYSTEM """', "unexpected EOF"),
        ('FROM x\nSYSTEM """"', "unexpected EOF"),
        ('FROM x\nSYSTEM """a""\n', "unexpected EOF"),
        ('FROM x\nSYSTEM "a\nPARAMETER num_ctx 1\n', "unexpected EOF"),
        ("FROM x\nREQUIRES soon", BAD_REQUIRES),
        ("FROM x\nREQUIRES ", BAD_REQUIRES),
        ("FROM x\nREQUIRES 1.02.0", BAD_REQUIRES),
        ("FROM x\nREQUIRES 1.2-rc", BAD_REQUIRES),
        ("FROM x\nREQUIRES 1.2.3-01", BAD_REQUIRES),
        ("FROM x\nREQUIRES 1.2.3\u0664", BAD_REQUIRES),
    ],
)
def test_what_is_no_modelfile_is_refused(text: str, message: str) -> None:
    with pytest.raises(ModelfileError) as caught:
        read(text)
    assert str(caught.value) == message
    assert caught.value.param == "modelfile"


def test_a_modelfile_is_written_in_ollamas_order_and_quotes() -> None:
    modelfile = Modelfile(
        bases=("/blobs/sha256-1", "/blobs/sha256-2"),
        adapters=("/a",),
        template="{{ .Prompt }}\n",
        system='two\n"lines"',
        parameters={"stop": ["<|a|>", " b"], "temperature": 1.0, "use_mmap": True, "seed": None},
        licenses=("MIT",),
        messages=(("user", "hi"), ("assistant", "")),
        renderer="r",
        parser="p",
        requires="0.14.0",
    )
    assert written(modelfile, "# made\n\n") == (
        "# made\n\n"
        "FROM /blobs/sha256-1\nFROM /blobs/sha256-2\nADAPTER /a\n"
        'TEMPLATE "{{ .Prompt }}\n"\n'
        'SYSTEM """two\n"lines""""\n'
        "RENDERER r\nPARSER p\nREQUIRES 0.14.0\n"
        'PARAMETER stop <|a|>\nPARAMETER stop " b"\nPARAMETER temperature 1\nPARAMETER use_mmap true\n'
        "LICENSE MIT\n"
        'MESSAGE user hi\nMESSAGE assistant ""\n'
    )


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", "a"),
        ('say "hi"', 'say "hi"'),
        ('"hi"', '""""hi""""'),
        ('"', '"""""""'),
        ("\ta", '"""\ta"""'),
        ("a\rb", '"""a\rb"""'),
        ("\x00a\u200d", "\x00a\u200d"),
        ('a """ b', 'a """ b'),
        ('"""a""" b\n', '""""""a""" b\n"""'),
        ('""\n', '"""""\n"""'),
    ],
)
def test_a_text_gets_the_quotes_that_it_needs(text: str, quoted: str) -> None:
    assert written(of("x", system=text)) == f"FROM x\nSYSTEM {quoted}\n"
    assert read(written(of("x", system=text))).system == text


@pytest.mark.parametrize(
    ("modelfile", "message"),
    [
        (Modelfile(()), "no FROM line"),
        (of(""), "no FROM line"),
        (of("x", messages=(("tool", "hi"),)), BAD_ROLE),
        (of("x", system='a"""\nb'), 'SYSTEM cannot be written: a line of its text ends with `"""`'),
        (
            of("x", messages=(("user", '"""\n'),)),
            'MESSAGE user cannot be written: a line of its text ends with `"""`',
        ),
        (of("x", parameters={"a\nb": 1}), r'a parameter cannot be named "a\nb"'),
        (of("x", parameters={"": 1}), 'a parameter cannot be named ""'),
    ],
)
def test_what_no_modelfile_can_say_is_refused(modelfile: Modelfile, message: str) -> None:
    with pytest.raises(ModelfileError) as caught:
        written(modelfile)
    assert str(caught.value) == message


@given(
    st.builds(
        Modelfile,
        bases=st.lists(TEXT.filter(bool), min_size=1, max_size=2).map(tuple),
        adapters=st.lists(TEXT, max_size=2).map(tuple),
        drafts=st.lists(TEXT, max_size=1).map(tuple),
        licenses=st.lists(TEXT, max_size=2).map(tuple),
        template=st.none() | TEXT,
        system=st.none() | TEXT,
        parameters=st.fixed_dictionaries(
            {},
            optional={
                "stop": st.lists(TEXT, min_size=1, max_size=2),
                "top_p": st.floats(width=32, allow_nan=False, allow_infinity=False),
                "num_ctx": st.integers(-(1 << 63), (1 << 63) - 1),
                "use_mmap": st.booleans(),
            },
        ),
        messages=st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), TEXT), max_size=2).map(
            tuple
        ),
        renderer=st.none() | TEXT,
        parser=st.none() | TEXT,
        requires=st.none() | st.just("0.14.0"),
    )
)
def test_what_is_written_reads_back_to_the_same_or_is_refused(modelfile: Modelfile) -> None:
    try:
        text = written(modelfile)
    except ModelfileError as error:
        assert 'ends with `"""`' in str(error)  # noqa: PT017 - what is left is the round trip
        return
    assert read(text) == modelfile


@given(
    st.binary()
    | st.lists(
        st.sampled_from(
            [
                b"FROM",
                b"parameter",
                b"MESSAGE",
                b"user",
                b"stop",
                b'"""',
                b'"',
                b" ",
                b"\n",
                b"\r",
                b"#",
                b"\xff\xfe",
            ]
        )
    ).map(b"".join)
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(ModelfileError):
        assert read(data).bases


@pytest.mark.parametrize(
    "text",
    [
        'SYSTEM "' + 'a" b\n' * 200_000,
        'SYSTEM """' + '"""x \n' * 200_000 + '"""',
        "SYSTEM a" + " " * 500_000 + "b",
        'SYSTEM """a' + " " * 500_000 + '"""b\n"""',
        "#\n" * 500_000 + "SYSTEM x",
        "SYSTEM x\n" * 50_000,
        "REQUIRES " + "1" * 500_000 + "!",
        "PARAMETER top_p " + "1" * 500_000 + "!",
    ],
)
def test_a_long_modelfile_takes_no_longer_than_its_length(text: str) -> None:
    started = time.process_time()
    with suppress(ModelfileError):
        read(f"FROM x\n{text}")
    assert time.process_time() - started < 2
