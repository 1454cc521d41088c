"""The child: the intake thread reads the socket and tokenizes, the main thread loads the model and steps.

When the parent's end closes, for whatever reason, the child ends at once: no orphan.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from fox import errors
from fox.engine import messages
from fox.engine.loop import Arrival, Inbox, StepLoop
from fox.engine.messages import Cancel, Close, LoadFailed, Ready, Start, Submit, ToChild, ToParent
from fox.engine.model import Model
from fox.generation import GenerationRequest


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
    return LlamaModel(start.name, Path(start.path), start.options)


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

    A request with a grammar is compiled on a thread of its own, so that the requests behind it need not wait.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._compiler = ThreadPoolExecutor(1, thread_name_prefix="grammar")
        self._compiling: set[str] = set()
        self.inbox: Inbox = SimpleQueue()
        self.model: Model | None = None

    def run(self) -> None:
        while True:
            message = self._link.receive()
            if isinstance(message, Submit):
                self._take(message.request)
            elif isinstance(message, Cancel):
                self._cancel(message)
            elif isinstance(message, Close):
                self.inbox.put(message)
                return  # the end of the socket that follows must not cut off what is being saved

    def _take(self, request: GenerationRequest) -> None:
        if request.grammar:
            self._compiling.add(request.id)
            self._compiler.submit(self._compile, request)
        else:
            self.inbox.put(self._arrival(request))

    def _cancel(self, message: Cancel) -> None:
        """Never before what it cancels."""
        if message.id in self._compiling:
            self._compiler.submit(self.inbox.put, message)
        else:
            self.inbox.put(message)

    def _compile(self, request: GenerationRequest) -> None:
        self.inbox.put(self._arrival(request))
        self._compiling.discard(request.id)

    def _arrival(self, request: GenerationRequest) -> Arrival:
        assert self.model is not None
        try:
            matcher = self.model.compile(request.grammar) if request.grammar else None
            return Arrival(request, list(request.tokens) or self.model.tokenize(request.prompt), matcher)
        except errors.FoxError as error:
            return Arrival(request, error)
        except Exception as error:  # a prompt must not end the engine
            return Arrival(request, errors.EngineFailed(f"tokenizing failed: {error}"))
