"""A memory that carries out moves as llama.cpp does: cells by (sequence, position), shared by reference or copy."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from fox.kvcache import Drop, Forget, Move, Restore, Save, Share, Spill, Trim

Cell = tuple[int, int]  # (identity, token)


class Memory:
    def __init__(self, *, by_copy: bool, can_trim: bool, capacity: int) -> None:
        self.by_copy, self.can_trim, self.capacity = by_copy, can_trim, capacity
        self.cells: dict[int, list[Cell]] = {}
        self.saved: dict[int, list[int]] = {}
        self._identity = count()

    def apply(self, moves: Iterable[Move]) -> None:
        for move in moves:
            self._apply(move)
            assert self.used <= self.capacity, "cells are free before they are needed"

    def _apply(self, move: Move) -> None:
        match move:
            case Drop(seq):
                self.cells.pop(seq, None)
            case Trim(seq, upto):
                assert self.can_trim
                assert upto <= len(self.cells[seq])
                del self.cells[seq][upto:]
            case Share(src, dst, upto, whole):
                assert not self.cells.get(dst)
                assert whole is (upto == len(self.cells[src]))
                assert whole or self.can_trim
                held = self.cells[src][:upto]
                self.cells[dst] = [self._new(t) for _, t in held] if self.by_copy else list(held)
            case Save(seq, key):
                self.saved[key] = self.tokens(seq)
            case Restore(key, seq):
                assert not self.cells.get(seq)
                self.cells[seq] = [self._new(t) for t in self.saved[key]]
            case Spill(key, tokens):
                assert self.saved[key] == list(tokens)
            case Forget(key):
                del self.saved[key]

    def compute(self, seq: int, start: int, tokens: Iterable[int]) -> None:
        cells = self.cells.setdefault(seq, [])
        assert start == len(cells), "cells are computed in order, none twice, none left out"
        cells.extend(self._new(t) for t in tokens)

    def tokens(self, seq: int) -> list[int]:
        return [token for _, token in self.cells.get(seq, [])]

    @property
    def used(self) -> int:
        return len({identity for cells in self.cells.values() for identity, _ in cells})

    def _new(self, token: int) -> Cell:
        return next(self._identity), token
