"""canitoolcall: 469 recorded outputs of models, read whole and in every chunking that it tries.

The readers are run in this process. An output is cut as an engine cuts it: control tokens are whole, the rest is words.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from canitoolcall.checks import case_status, run_checks
from canitoolcall.chunking import DEFAULT_STRATEGIES, ChunkStrategy, split
from canitoolcall.fixtures import Family as Recorded
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import CheckResult, Observation, ParseResult, Status, StreamAccumulator

from fox.chat.pieces import Arguments, Call, Content, Piece, Reasoning
from fox.chat.reading import Family, family_named
from fox.chat.tools import Tool

NAMES = {
    "deepseek-v31": "deepseek-v3.1",
    "deepseek-v32": "deepseek-v3.2",
    "deepseek-v4": "deepseek-v3.2",
    "deepseek-v41": "deepseek-v4.1",
    "gemma4": "gemma4",
    "kimi-k3-xtml": "kimi-k3",
    "llama3-json": "llama3",
    "llama4-pythonic": "llama4",
}
SLUGS = {
    "deepseek": "deepseek-v3",
    "kimi": "kimi-k2",
    "qwen3-hermes": "hermes",
    "qwen3-xml": "qwen3-coder",
}


class Replay:
    """One recorded output, read by the family that its model belongs to."""

    def __init__(self, fixture: Fixture, recorded: Recorded) -> None:
        model = recorded.reference_for(fixture.reference_model)
        assert model is not None
        self._fixture = fixture
        self._family: Family = family_named(
            NAMES.get(model.variant or "") or SLUGS.get(fixture.family, fixture.family)
        )
        prompt = fixture.generation_prompt or model.default_generation_prompt or ""
        thought = self._family.thought
        self._opened = bool(thought) and prompt.rstrip().endswith(thought[0]) if thought else False
        longest_first = sorted(recorded.markers, key=len, reverse=True)
        self._markers = frozenset(recorded.markers)
        text = fixture.raw_output
        for stop in model.stop_tokens:
            text = text.removesuffix(stop)
        self._units = re.findall("|".join([*map(re.escape, longest_first), r"\w+|\s|[^\w\s]"]), text)

    def observed(self) -> Observation:
        streams = {s.id: self._read(self._chunks(s)) for s in DEFAULT_STRATEGIES}
        return Observation(self._read(["".join(self._units)]), streams)

    def _chunks(self, strategy: ChunkStrategy) -> Iterable[str]:
        return ("".join(group) for group in split(self._units, strategy, self._markers))

    def _read(self, chunks: Iterable[str]) -> ParseResult:
        tools = [Tool.of(tool) for tool in self._fixture.tools]
        reader = self._family.reader(tools, self._family.thought, opened=self._opened)
        heard = StreamAccumulator()
        try:
            for chunk in chunks:
                _tell(heard, reader.feed(chunk))
            _tell(heard, reader.finish(truncated=self._fixture.truncated))
        except Exception as error:
            return heard.result(f"{type(error).__name__}: {error}")
        return heard.result()


def _tell(heard: StreamAccumulator, pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        match piece:
            case Content(text):
                heard.add_content(text)
            case Reasoning(text):
                heard.add_reasoning(text)
            case Call(index, name, _):
                heard.add_tool_call(index, name)
            case Arguments(index, text):
                heard.add_tool_call(index, arguments=text)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="conformance toolcalls", description=__doc__)
    parser.add_argument("only", nargs="*", help="fixtures whose id contains one of these")
    parser.add_argument("--failures", action="store_true", help="tell what differs")
    asked = parser.parse_args(argv)
    families, scores = load_families(), Counter[tuple[str, Status]]()
    for fixture in load_fixtures():
        if asked.only and not any(part in fixture.id for part in asked.only):
            continue
        family = families[fixture.family]
        rows = run_checks(fixture, family, Replay(fixture, family).observed())
        status = case_status(rows)
        scores[fixture.family, status] += 1
        if asked.failures and status is not Status.PASS:
            _show(fixture, rows)
    for slug in sorted(families):
        told = {status.value: scores[slug, status] for status in Status if scores[slug, status]}
        print(f"{slug:14} {told}")
    passed = sum(count for (_, status), count in scores.items() if status is Status.PASS)
    print(f"toolcalls      {passed} of {scores.total()} read exactly, whole and in every chunking")
    return 0


def _show(fixture: Fixture, rows: Sequence[CheckResult]) -> None:
    print(f"--- {fixture.id} ({', '.join(fixture.tags)})\n{fixture.raw_output!r}")
    for row in rows:
        if row.status is not Status.PASS:
            print(f"    {row.status.value} {row.check} {row.strategy}: {row.detail}")
