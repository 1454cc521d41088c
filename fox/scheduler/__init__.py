"""What to decode next. Pure: `plan()` returns a step as data, `commit()` tells what came of it."""

from fox.scheduler.limits import Counts, Limits
from fox.scheduler.plan import Chunk, Sampled, Step
from fox.scheduler.policy import Scheduler
from fox.scheduler.sequence import Sequence, State
from fox.scheduler.speculation import Guesser

__all__ = ["Chunk", "Counts", "Guesser", "Limits", "Sampled", "Scheduler", "Sequence", "State", "Step"]
