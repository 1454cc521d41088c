"""The child: the intake thread reads the socket and tokenizes, the main thread loads the model and steps.

When the parent's end closes, for whatever reason, the child ends at once: no orphan.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from fox import errors
from fox.engine import messages
from fox.engine.embedding import Job, prepare
from fox.engine.loop import Arrival, Inbox, Item, StepLoop
from fox.engine.messages import (
    Cancel,
    Close,
    Detokenize,
    Embed,
    Failed,
    LoadFailed,
    Ready,
    Result,
    Start,
    Submit,
    Task,
    ToChild,
    Tokenize,
    Tokens,
    ToParent,
)
from fox.engine.model import Model
from fox.generation import Failure, GenerationRequest

T = TypeVar("T")


def main(fd: int) -> None:
    """Serve one model over the socket `fd` until the parent closes it."""
    for signum in (signal.SIGINT, signal.SIGTERM):  # the parent decides: it drains first
        signal.signal(signum, signal.SIG_IGN)
    link = Link(socket.socket(fileno=fd))
    start = link.receive()
    assert isinstance(start, Start)
    intake = Intake(link)
    threading.Thread(target=intake.run, daemon=True).start()
    try:
        model = _load(start)
    except errors.ModelLoadFailed as error:
        link.send(LoadFailed(str(error.args[1])))
        os._exit(0)
    intake.model = model
    loop = StepLoop(model, start.options, intake.inbox, link.send)
    link.send(Ready(model.info))
    loop.run()
    os._exit(0)


def _load(start: Start) -> Model:
    if start.kind == "echo":
        from fox.engine.echo import EchoModel

        return EchoModel(start.name, start.options)
    from fox.engine.llama import LlamaModel

    assert start.path is not None
    return LlamaModel(start.name, Path(start.path), start.options, tuple(map(Path, start.adapters)))


class Link:
    """The child's end of the socket. `receive` belongs to the intake thread, `send` to the step thread."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def receive(self) -> ToChild:
        """The next message. Ends the process where the parent has gone."""
        return messages.decode_to_child(self._read(messages.body_bytes(self._read(messages.HEADER_BYTES))))

    def send(self, message: ToParent) -> None:
        try:
            self._sock.sendall(messages.frame(message))
        except OSError:
            os._exit(0)

    def _read(self, size: int) -> bytearray:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            try:
                count = self._sock.recv_into(view)
            except OSError:
                count = 0
            if count == 0:
                os._exit(0)
            view = view[count:]
        return buffer


class Intake:
    """Reads requests, tokenizes them (ctypes drops the GIL: decoding goes on) and puts them in the inbox.

    Grammars are compiled, and texts for embeddings tokenized, on a thread of their own.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._desk = ThreadPoolExecutor(1, thread_name_prefix="desk")
        self._preparing: set[str] = set()
        self.inbox: Inbox = SimpleQueue()
        self.model: Model | None = None

    def run(self) -> None:
        while True:
            message = self._link.receive()
            match message:
                case Submit(request) if request.grammar:
                    self._aside(request.id, self._arrival, request)
                case Submit(request):
                    self.inbox.put(self._arrival(request))
                case Embed():
                    self._aside(message.id, self._result, message)
                case Tokenize() | Detokenize():
                    self.inbox.put(self._result(message))
                case Cancel():
                    self._cancel(message)
                case Close():
                    self.inbox.put(message)
                    return  # the end of the socket that follows must not cut off what is being saved

    def _aside(self, id_: str, prepare: Callable[[T], Item], what: T) -> None:
        """What takes long to prepare has a thread of its own: what comes behind it need not wait."""

        def put() -> None:
            self.inbox.put(prepare(what))
            self._preparing.discard(id_)

        self._preparing.add(id_)
        self._desk.submit(put)

    def _cancel(self, message: Cancel) -> None:
        """Never before what it cancels."""
        if message.id in self._preparing:
            self._desk.submit(self.inbox.put, message)
        else:
            self.inbox.put(message)

    def _arrival(self, request: GenerationRequest) -> Arrival:
        assert self.model is not None
        try:
            matcher = self.model.compile(request.grammar) if request.grammar else None
            return Arrival(request, list(request.tokens) or self.model.tokenize(request.prompt), matcher)
        except errors.FoxError as error:
            return Arrival(request, error)
        except Exception as error:  # a prompt must not end the engine
            return Arrival(request, errors.EngineFailed(f"tokenizing failed: {error}"))

    def _result(self, task: Task) -> Job | Result:
        """What the task comes to, or the job that remains to be done."""
        try:
            return self._perform(task)
        except errors.FoxError as error:
            return Failed(task.id, Failure(*errors.to_wire(error)))
        except Exception as error:
            return Failed(
                task.id, Failure(*errors.to_wire(errors.EngineFailed(f"tokenizing failed: {error}")))
            )

    def _perform(self, task: Task) -> Job | Result:
        model = self.model
        assert model is not None
        match task:
            case Embed():
                return prepare(task, model.embedder, model.info.vocab_tokens)
            case Tokenize(id_, prompt, begins):
                tokens = tuple(model.tokenize(prompt, begins=begins))
                return Tokens(id_, tokens, tuple(map(model.name, tokens)))
            case Detokenize(id_, tokens):
                for token in tokens:
                    if not 0 <= token < model.info.vocab_tokens:
                        said = f"`tokens`: {token} is not in the vocabulary of {model.info.vocab_tokens}"
                        raise errors.InvalidRequest(said, "tokens")
                return Tokens(id_, tokens, tuple(map(model.name, tokens)))
