"""What to decode next. Pure: `plan()` returns a step as data, `commit()` tells what came of it."""

from fox.scheduler.plan import Chunk, Step
from fox.scheduler.policy import Counts, Limits, Scheduler
from fox.scheduler.sequence import Sequence, State

__all__ = ["Chunk", "Counts", "Limits", "Scheduler", "Sequence", "State", "Step"]
