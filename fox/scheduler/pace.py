"""How many prompt tokens a step may carry so that running streams do not notice: learned from the steps so far."""

from __future__ import annotations

SMOOTHING = 0.3
FIRST_CHUNK_TOKENS = 32
SMALLEST_CHUNK_TOKENS = 8
STRETCH = 2.2  # a step with prompts takes so many targets: small pieces cost more, and nobody may wait for over three


class Pace:
    """Estimates, in seconds, what a decode step and a prompt token cost. `target_s`: what a step should take while
    somebody is decoding; prompts stretch it, and get as much as the target itself where decodes alone take longer."""

    def __init__(self, target_s: float) -> None:
        self.target_s = target_s
        self._decode_s = 0.0
        self._prompt_token_s = 0.0

    def chunk_tokens(self, most: int, *, decoding: bool) -> int:
        """Prompt tokens for the next step, at most `most`: all of them while nobody decodes."""
        if not decoding:
            return most
        if not self._prompt_token_s:
            return min(most, FIRST_CHUNK_TOKENS)
        spare_s = max(self.target_s, STRETCH * self.target_s - self._decode_s)
        return min(most, max(SMALLEST_CHUNK_TOKENS, int(spare_s / self._prompt_token_s)))

    def learn(self, decodes: int, prompt_tokens: int, elapsed_s: float) -> None:
        """A step with `decodes` decoded tokens and `prompt_tokens` of prompts took this long."""
        if not prompt_tokens:
            self._decode_s = _blend(self._decode_s, elapsed_s)
        elif prompt_tokens >= SMALLEST_CHUNK_TOKENS:
            spent = elapsed_s - (self._decode_s if decodes else 0.0)
            self._prompt_token_s = _blend(self._prompt_token_s, max(spent, elapsed_s / 4) / prompt_tokens)


def _blend(old: float, new: float) -> float:
    return new if not old else old + SMOOTHING * (new - old)
