"""The event loop of a synchronous connection: it runs during the calls of the connection, while signals wait."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import selectors
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
#: Maximum number of turns of the loop in a call that does not wait: a flood of messages does not keep it.
_MOST_TURNS = 1000
_libc = ctypes.CDLL(None, use_errno=True)


class Reader(Protocol):
    @property
    def _has_news(self) -> bool: ...


class Selector(selectors.PollSelector):
    """Waits with poll instead of epoll, which a forked child would share with its parent. There is an epoll only for
    programs that ask for a descriptor: it has the same files, and a timer."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop
        self.process = os.getpid()
        self._epoll: select.epoll | None = None
        #: The number of turns that the loop may make without waiting; 0 if it waits as usual.
        self.turns = 0
        #: The time until the loop has something to do by itself after such turns; None for ever.
        self.pause: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self.turns:
            return super().select(timeout)
        self.turns -= 1
        found = super().select(0)
        if (idle := not found and timeout != 0) or not self.turns:
            self.pause = timeout if idle else 0.0
            self._stop()
        return found

    def descriptor(self) -> int:
        if not self._epoll:
            epoll = select.epoll()
            self._timer = int(_libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
            if self._timer < 0:
                raise OSError(number := ctypes.get_errno(), os.strerror(number))
            epoll.register(self._timer, select.EPOLLIN)
            self._epoll = epoll
            self.show(0)
            for key in self.get_map().values():
                self._mirror(key.fd, key.events)
        return self._epoll.fileno()

    def show(self, pause: float | None) -> None:
        """Makes the descriptor readable after this time, for None not by itself."""
        if self._epoll:
            seconds, nanoseconds = divmod(0 if pause is None else max(int(pause * 1e9), 1), 10**9)
            _libc.timerfd_settime(self._timer, 0, (ctypes.c_long * 4)(0, 0, seconds, nanoseconds), None)

    def _mirror(self, file: int, events: int) -> None:
        if self._epoll and os.getpid() == self.process:
            with contextlib.suppress(OSError):  # it is not there, or closed
                self._epoll.unregister(file)
            bits = {selectors.EVENT_READ: select.EPOLLIN, selectors.EVENT_WRITE: select.EPOLLOUT}
            if events:
                self._epoll.register(file, sum(bits[one] for one in bits if events & one))

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self._mirror(key.fd, events)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self.unregister(fileobj)
        return self.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._mirror(key.fd, 0)
        return key

    def close(self) -> None:
        super().close()
        if self._epoll:
            self._epoll.close()
            os.close(self._timer)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        weak: Loop = weakref.proxy(self)
        self.selector = Selector(lambda: weak.stop())
        super().__init__(self.selector)
        self.readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        #: The tasks of calls, each with the frame of complete().
        self.calls: dict[asyncio.Task[Any], FrameType] = {}
        #: The signals that have arrived and whose handlers have not been called, each with its handler.
        self.arrived: list[tuple[Callable[[int, FrameType | None], Any], int, FrameType | None]] = []

    def complete(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Runs until a coroutine is done, and returns its result. If a handler of a signal raises, the coroutine is
        cancelled: at once, or before anything else runs if the next exception comes before that."""
        task: asyncio.Task[T] | None = None

        def begin(frame: FrameType) -> None:
            nonlocal task
            self.selector.turns = 0
            if not task:
                self.selector.show(0)  # the end of the work may leave something to do
                task = self.create_task(function(*args))
                self.calls[task] = frame
                task.add_done_callback(self._end)

        try:
            while not task or not task.done():
                self._run(begin, sys._getframe())
        except BaseException:
            while task and not task.done():
                self._run(self._cancel, sys._getframe())
            raise
        self.calls.pop(task, None)
        return task.result()

    def process(self) -> None:
        """Does what there is to do without waiting."""

        def begin(_: FrameType) -> None:
            self.selector.turns, self.selector.pause = _MOST_TURNS, 0.0

        self.selector.show(0)  # also if a handler raises
        try:
            self._run(begin, sys._getframe())
        finally:
            self.selector.turns = 0
        if not any(reader._has_news for reader in self.readers):
            self.selector.show(self.selector.pause)

    def _run(self, begin: Callable[[FrameType], None], frame: FrameType) -> None:
        """Runs until a call is done, a signal has arrived, or the selector ends its turns."""
        signals = _Signals(self)
        try:
            running = _frames()
            for task in [task for task, caller in self.calls.items() if id(caller) not in running]:
                self._cancel_task(task)  # an exception has ended its caller
            begin(frame)
            self.run_forever()
        finally:
            signals.restore()

    def _cancel(self, frame: FrameType) -> None:
        for task in [task for task, caller in self.calls.items() if caller is frame]:
            self._cancel_task(task)

    def _cancel_task(self, task: asyncio.Task[Any]) -> None:
        del self.calls[task]
        task.cancel()

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.calls.pop(task, None)
        task.cancelled() or task.exception()  # an exception of a handler may replace this one
        self.stop()


def _frames() -> set[int]:
    """Returns the frames of the functions that this thread runs, by id()."""
    frames, frame = set(), sys._getframe().f_back
    while frame:
        frames.add(id(frame))
        frame = frame.f_back
    return frames


class _Signals:
    """Keeps signals from their handlers: an exception inside the loop would lose the message that is handled. A flood of
    them may interrupt the functions of this class: what it leaves replaced is not active, and passes signals on."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._replaced: set[int] = set()
        self._is_active = False
        if threading.current_thread() is threading.main_thread():
            for number in map(int, signal.valid_signals()):
                handler = signal.getsignal(number)
                while isinstance(left := getattr(handler, "__self__", None), _Signals) and not left._is_active:
                    handler = left._handlers[number]
                if callable(handler):
                    self._handlers[number] = handler
            try:
                for number in self._handlers:
                    self._replaced.add(number)
                    signal.signal(number, self._arrive)
            except BaseException:  # raised by a handler that is not replaced yet
                self.restore()
                raise
        self._is_active = True

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        handler = self._handlers[number]
        if self._is_active:
            self._loop.arrived.append((handler, number, frame))
            self._loop.call_soon_threadsafe(self._loop.stop)
        else:
            signal.signal(number, handler)
            handler(number, frame)

    def restore(self) -> None:
        """Restores the handlers, and calls those of the signals that have arrived: all, also if one raises."""
        self._is_active = False
        try:
            while self._replaced:
                number = next(iter(self._replaced))
                signal.signal(number, self._handlers[number])
                self._replaced.discard(number)
            while self._loop.arrived:
                handler, number, frame = self._loop.arrived.pop(0)
                handler(number, frame)
        finally:
            if self._replaced or self._loop.arrived:
                self.restore()
