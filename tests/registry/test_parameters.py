from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fox.errors import InvalidRequest
from fox.registry.parameters import DEPRECATED, KNOWN, WrongType, go_quote, parsed, printed, shown, typed

BIGGEST = (1 << 63) - 1
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("num_ctx", 4096, 4096),
        ("num_ctx", 4096.7, 4096),
        ("seed", -1.9, -1),
        ("seed", BIGGEST, BIGGEST),
        ("temperature", 0.7, 0.7),
        ("temperature", 1, 1.0),
        ("use_mmap", False, False),
        ("stop", "a", ["a"]),
        ("stop", ["a", "b"], ["a", "b"]),
        ("stop", [], []),
        ("num_ctx", None, None),
        ("stop", None, None),
        ("no_such_option", "x", None),
        ("mirostat", 2, None),
    ],
)
def test_a_json_value_takes_its_options_type(name: str, value: object, found: object) -> None:
    assert typed(name, value) == found
    assert type(typed(name, value)) is type(found)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_ctx", "4096", 'option "num_ctx" must be of type integer'),
        ("num_ctx", True, 'option "num_ctx" must be of type integer'),
        ("num_ctx", [1], 'option "num_ctx" must be of type integer'),
        ("num_ctx", math.nan, 'option "num_ctx" must be of type integer'),
        ("num_ctx", math.inf, 'option "num_ctx" must be of type integer'),
        ("seed", BIGGEST + 1, 'option "seed" must be of type integer'),
        ("seed", -BIGGEST - 2, 'option "seed" must be of type integer'),
        ("seed", 1e30, 'option "seed" must be of type integer'),
        ("top_p", "0.9", 'option "top_p" must be of type float32'),
        ("top_p", False, 'option "top_p" must be of type float32'),
        ("top_p", math.nan, 'option "top_p" must be of type float32'),
        ("top_p", -math.inf, 'option "top_p" must be of type float32'),
        ("top_p", 1e39, 'option "top_p" must be of type float32'),
        ("top_p", 10**400, 'option "top_p" must be of type float32'),
        ("use_mmap", 1, 'option "use_mmap" must be of type boolean'),
        ("use_mmap", "true", 'option "use_mmap" must be of type boolean'),
        ("stop", 1, 'option "stop" must be of type array'),
        ("stop", {"a": 1}, 'option "stop" must be of type array'),
        ("stop", ["a", 1], 'option "stop" must be of an array of strings'),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(WrongType) as caught:
        typed(name, value)
    assert str(caught.value) == message
    assert caught.value.param == "options"


@pytest.mark.parametrize(
    ("name", "texts", "found"),
    [
        ("num_ctx", ["4096"], 4096),
        ("seed", ["-1"], -1),
        ("seed", ["+7"], 7),
        ("seed", ["007"], 7),
        ("top_k", ["1", "2"], 1),
        ("temperature", ["0.7"], 0.7),
        ("temperature", ["1"], 1.0),
        ("temperature", [".5"], 0.5),
        ("temperature", ["1e-3"], 0.001),
        ("use_mmap", ["T"], True),
        ("use_mmap", ["0"], False),
        ("stop", ["a", "b"], ["a", "b"]),
        ("stop", [""], [""]),
        ("mirostat", ["2"], None),
        ("numa", ["true"], None),
    ],
)
def test_a_text_reads_as_its_options_type(name: str, texts: list[str], found: object) -> None:
    assert parsed(name, texts) == found
    assert type(parsed(name, texts)) is type(found)


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("x", ["1"], "unknown parameter 'x'"),
        ("", ["1"], "unknown parameter ''"),
        ("num_ctx", ["4096.0"], "invalid int value [4096.0]"),
        ("num_ctx", ["4_096"], "invalid int value [4_096]"),
        ("num_ctx", ["٤"], "invalid int value [٤]"),
        ("num_ctx", [" 1"], "invalid int value [ 1]"),
        ("num_ctx", ["x", "y"], "invalid int value [x y]"),
        ("num_ctx", [], "invalid int value []"),
        ("seed", [str(BIGGEST + 1)], f"invalid int value [{BIGGEST + 1}]"),
        ("seed", ["9" * 5000], f"invalid int value [{'9' * 5000}]"),
        ("top_p", ["x"], "invalid float value [x]"),
        ("top_p", ["."], "invalid float value [.]"),
        ("top_p", ["nan"], "invalid float value [nan]"),
        ("top_p", ["inf"], "invalid float value [inf]"),
        ("top_p", ["1e39"], "invalid float value [1e39]"),
        ("top_p", ["1e999"], "invalid float value [1e999]"),
        ("use_mmap", ["yes"], "invalid bool value [yes]"),
        ("use_mmap", ["tRUE"], "invalid bool value [tRUE]"),
    ],
)
def test_a_text_that_does_not_read_is_refused(name: str, texts: list[str], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parsed(name, texts)
    assert str(caught.value) == message
    assert caught.value.param == "parameters"


def test_no_option_is_both_known_and_deprecated() -> None:
    assert not KNOWN.keys() & DEPRECATED


def test_parameters_are_shown_in_two_columns() -> None:
    parameters = {
        "stop": ["<|eot_id|>", 'say "hi"\n'],
        "temperature": 0.7,
        "top_p": 1.0,
        "num_ctx": 1048576,
        "use_mmap": True,
        "seed": None,
    }
    assert shown(parameters).split("\n") == [
        'stop                           "<|eot_id|>"',
        'stop                           "say \\"hi\\"\\n"',
        "temperature                    0.7",
        "top_p                          1",
        "num_ctx                        1048576",
        "use_mmap                       true",
    ]
    assert shown({}) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (0.7, "0.7"),
        (2048.0, "2048"),
        (999999.0, "999999"),
        (1e6, "1e+06"),
        (1048576.0, "1.048576e+06"),
        (0.0001, "0.0001"),
        (0.00012, "0.00012"),
        (1e-5, "1e-05"),
        (1e21, "1e+21"),
        (-1.5, "-1.5"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (1048576, "1048576"),
        (False, "false"),
    ],
)
def test_a_value_prints_as_go_prints_it(value: object, text: str) -> None:
    assert printed(value) == [text]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("<|eot_id|>", '"<|eot_id|>"'),
        ("`a`", '"`a`"'),
        ('a"b\\c', r'"a\"b\\c"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1b\x7f", r'"\x00\x1b\x7f"'),
        (
            "\x80\xa0\xad\u200b\u200d\u2028\u3000\ufeff\ue000",
            r'"\u0080\u00a0\u00ad\u200b\u200d\u2028\u3000\ufeff\ue000"',
        ),
        ("\U000e0001", r'"\U000e0001"'),
        ("\ud800", r'"\ufffd"'),
        ("é😀 日本\ufffd", '"é😀 日本\ufffd"'),
    ],
)
def test_a_text_is_quoted_as_go_quotes_it(text: str, quoted: str) -> None:
    assert go_quote(text) == quoted


@given(
    st.tuples(st.sampled_from([n for n, kind in KNOWN.items() if kind == "float32"]), FLOATS)
    | st.tuples(
        st.sampled_from([n for n, kind in KNOWN.items() if kind == "integer"]), st.integers(-BIGGEST, BIGGEST)
    )
    | st.tuples(st.just("use_mmap"), st.booleans())
    | st.tuples(st.just("stop"), st.lists(st.text()))
)
def test_what_is_printed_is_parsed_to_the_same(option: tuple[str, object]) -> None:
    name, value = option
    assert parsed(name, printed(value)) == value == typed(name, value)


@given(
    st.sampled_from(sorted(KNOWN)),
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4),
)
def test_any_json_value_is_typed_or_refused(name: str, value: object) -> None:
    try:
        found = typed(name, value)
    except WrongType:
        return
    assert found is None or isinstance(found, list) or math.isfinite(found)
