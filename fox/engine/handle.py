"""The parent's side of one engine: starts the child, speaks to it, and fails its generations when it dies."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
import uuid
from collections import deque
from collections.abc import Sequence

from fox import errors
from fox.engine import messages
from fox.engine.messages import (
    Accepted,
    Cancel,
    Close,
    Detokenize,
    Embed,
    EngineStats,
    Failed,
    LoadFailed,
    Ready,
    Result,
    Start,
    Stepped,
    Submit,
    Task,
    Tokenize,
    Tokens,
    ToParent,
    Vectors,
)
from fox.engine.options import EngineSpec
from fox.engine.stream import Generation
from fox.generation import GenerationRequest, ModelInfo, PromptPart

log = logging.getLogger("fox.engine")

CLOSE_PATIENCE_S = 5.0
SAVE_PATIENCE_S = 30.0  # with states to write to disk
STDERR_TAIL_LINES = 5


class Engine:
    """One loaded model in its child process. Belongs to the event loop that started it."""

    def __init__(self, spec: EngineSpec, process: asyncio.subprocess.Process) -> None:
        self.spec = spec
        self.name = spec.name
        self.pid = process.pid
        self.started_at = time.time()
        self.stats = EngineStats()
        self.info: ModelInfo
        self._process = process
        self._open: dict[str, Generation] = {}
        self._tasked: dict[str, asyncio.Future[Result]] = {}
        self._ready: asyncio.Future[ModelInfo] = asyncio.get_running_loop().create_future()
        self._stderr: deque[str] = deque(maxlen=STDERR_TAIL_LINES)
        self._transport: asyncio.WriteTransport
        self._closing = False
        self._lost = False
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(cls, spec: EngineSpec) -> Engine:
        """Start a child, have it load the model and wait until it can answer. Raises ModelLoadFailed."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                engine = cls(spec, await _spawn(theirs.fileno()))
            except BaseException:
                ours.close()
                raise
        try:
            await engine._connect(ours)
            engine.info = await engine._ready
        except BaseException:
            await engine.close()
            raise
        return engine

    @property
    def alive(self) -> bool:
        return not (self._closing or self._lost)

    @property
    def open_ids(self) -> tuple[str, ...]:
        """Of the generations that are not over, the oldest first."""
        return tuple(self._open)

    async def submit(self, request: GenerationRequest) -> Generation:
        """Hand a request to the child; returns once it is queued there.

        Raises InvalidRequest, ContextExceeded or QueueFull where the child refuses it, EngineFailed where it is dead.
        """
        if not self.alive:
            raise self._is_dead()
        if request.id in self._open:
            raise errors.InvalidRequest(f"a request with the id `{request.id}` is running", "id")
        generation = self._open[request.id] = Generation(self.cancel, request)
        self._send(Submit(request))
        try:
            accepted = await generation.accepted
        except asyncio.CancelledError:
            generation.cancel()
            raise
        generation.prompt_tokens, generation.truncated = accepted.prompt_tokens, accepted.truncated
        generation.warnings = accepted.warnings
        return generation

    def cancel(self, id_: str) -> bool:
        """Ask the child to stop a generation; whether it is open. One that is over already is no error."""
        is_open = self.alive and id_ in self._open
        if is_open:
            self._send(Cancel(id_))
        return is_open

    async def embed(
        self,
        inputs: Sequence[str | tuple[int, ...]],
        *,
        dimensions: int | None = None,
        truncate: bool = False,
        query: str | None = None,
    ) -> Vectors:
        """Vectors of unit length, in order; with a `query`, how near each text is to it.

        Raises InvalidRequest where the model cannot do what is asked, EngineFailed where it is dead or fails.
        """
        task = Embed(_new_id(), tuple(inputs), dimensions, truncate, query)
        result = await self._perform(task)
        assert isinstance(result, Vectors)
        return result

    async def tokenize(self, prompt: Sequence[PromptPart], *, begins: bool) -> Tokens:
        """`begins`: with the tokens that a text begins with. Raises as `embed` does."""
        result = await self._perform(Tokenize(_new_id(), tuple(prompt), begins))
        assert isinstance(result, Tokens)
        return result

    async def detokenize(self, tokens: Sequence[int]) -> Tokens:
        """Raises as `embed` does."""
        result = await self._perform(Detokenize(_new_id(), tuple(tokens)))
        assert isinstance(result, Tokens)
        return result

    async def close(self) -> None:
        """End the child and wait for it. Open generations fail. Idempotent."""
        patience = SAVE_PATIENCE_S if self.spec.options.kv_dir else CLOSE_PATIENCE_S
        if self.alive and self._ready.done():
            self._send(Close())
        self._closing = True
        self._transport.close()
        try:
            await asyncio.wait_for(self._process.wait(), patience)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await asyncio.gather(*self._tasks)

    def receive(self, message: ToParent) -> None:
        """For the link: one message from the child."""
        match message:
            case Stepped():
                self._spread(message)
            case Ready(info):
                self._settle(info)
            case Vectors() | Tokens() | Failed():
                self._deliver(message)
            case LoadFailed(reason):
                self._settle(errors.ModelLoadFailed(self.name, reason))

    def lose(self) -> None:
        """For the link: the child's end has closed."""
        self._lost = True
        self._tasks.append(asyncio.get_running_loop().create_task(self._bury()))

    async def _perform(self, task: Task) -> Result:
        if not self.alive:
            raise self._is_dead()
        future = self._tasked[task.id] = asyncio.get_running_loop().create_future()
        self._send(task)
        try:
            result: Result = await future
            return result
        except asyncio.CancelledError:
            if self.alive:
                self._send(Cancel(task.id))
            raise
        finally:
            del self._tasked[task.id]

    def _is_dead(self) -> errors.EngineFailed:
        return errors.EngineFailed(f"the engine of '{self.name}' is not running")

    def _deliver(self, result: Result) -> None:
        future = self._tasked.get(result.id)
        if future is None or future.done():
            return
        if isinstance(result, Failed):
            future.set_exception(result.failure.to_error())
        else:
            future.set_result(result)

    def _spread(self, message: Stepped) -> None:
        self.stats = message.stats
        for accepted in message.accepted:
            self._accept(accepted)
        for refused in message.refused:
            self._open.pop(refused.id).fail(refused.failure.to_error())
        for delta in message.deltas:
            self._open[delta.id].push(delta)
            if delta.finish is not None:
                del self._open[delta.id]

    def _accept(self, accepted: Accepted) -> None:
        waiter = self._open[accepted.id].accepted
        if not waiter.done():
            waiter.set_result(accepted)

    def _settle(self, outcome: ModelInfo | errors.FoxError) -> None:
        if self._ready.done():
            return
        if isinstance(outcome, errors.FoxError):
            self._ready.set_exception(outcome)
        else:
            self._ready.set_result(outcome)

    async def _connect(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._read_stderr()))
        self._transport, _ = await loop.create_unix_connection(lambda: _Link(self), sock=sock)
        path = None if self.spec.path is None else str(self.spec.path)
        adapters = tuple(map(str, self.spec.adapters))
        self._send(Start(self.spec.name, self.spec.kind, path, self.spec.options, adapters))

    async def _bury(self) -> None:
        """Give the reason of the child's end to all who wait for it."""
        code = await self._process.wait()
        reason = f"the engine of '{self.name}' {self._last_words(code)}"
        self._settle(errors.ModelLoadFailed(self.name, reason))
        self.stats = EngineStats()
        while self._open:
            self._open.popitem()[1].fail(errors.EngineFailed(reason))
        for future in self._tasked.values():
            if not future.done():
                future.set_exception(errors.EngineFailed(reason))
        if not self._closing:
            log.error("%s", reason)

    def _last_words(self, code: int) -> str:
        if self._closing:
            return "was closed"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"{how}: {self._stderr[-1]}" if self._stderr else how

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        async for raw in self._process.stderr:
            if line := raw.decode(errors="replace").rstrip():
                self._stderr.append(line)
                log.warning("%s: %s", self.name, line)

    def _send(self, message: messages.ToChild) -> None:
        self._transport.write(messages.frame(message))


def _new_id() -> str:
    return f"task-{uuid.uuid4().hex}"


async def _spawn(fd: int) -> asyncio.subprocess.Process:
    """A child that finds its end of the socket pair at `fd`. -P: modules of the working directory are not imported."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "fox.engine", str(fd)),
        pass_fds=(fd,),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )


class _Link(asyncio.Protocol):
    """Cuts the byte stream from the child into messages."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        at, header = 0, messages.HEADER_BYTES
        with memoryview(self._buffer) as view:
            while len(view) - at >= header:
                end = at + header + messages.body_bytes(view[at:])
                if end > len(view):
                    break
                self._engine.receive(messages.decode_to_parent(view[at + header : end]))
                at = end
        del self._buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._engine.lose()
