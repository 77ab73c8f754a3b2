"""The functions of `resourced` for programs without asyncio: each function waits for its result.

A connection has an event loop of its own, which runs inside these functions, in the thread of the caller. Between calls
nothing is read; messages that the daemon sends meanwhile are read by the next call. A program with other things to wait
for as well gives a connection to select or poll, as it has a fileno(). Inside a running event loop use `resourced`.

While a function waits in the main thread, handlers of signals run between two turns of its loop. If a handler raises,
as that of Ctrl-C does, the wait ends, and no message is lost. A connection belongs to its process: a forked child can
only close it, without effect on the parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import functools
import inspect
import os
import select
import selectors
import signal
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from resourced import acquisition as _acquisition
from resourced import connection as _connection
from resourced import journal as _journal
from resourced import ledger as _ledger
from resourced import rpc as _rpc
from resourced import stream as _stream
from resourced.errors import ResourcedError
from resourced.idset import IDset
from resourced.resource_set import ResourceSet

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
_Names = list[_ledger.Name]
#: Maximum number of turns of the loop in a call that does not wait: a flood of messages does not keep it.
_MOST_TURNS = 1000
_libc = ctypes.CDLL(None, use_errno=True)


class _Selector(selectors.PollSelector):
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
        """Makes the descriptor readable after this time; None sets no time."""
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


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        weak: _Loop = weakref.proxy(self)
        self.selector = _Selector(lambda: weak.stop())
        super().__init__(self.selector)
        self.readers: weakref.WeakSet[Any] = weakref.WeakSet()

    def run(self) -> None:
        """Runs until it is stopped, or a signal has arrived."""
        signals = _Signals(self)
        try:
            self.run_forever()
        finally:
            signals.restore()
        signals.deliver()

    def process(self) -> None:
        """Does what there is to do without waiting."""
        self.selector.show(0)  # also if a handler raises
        self.selector.turns, self.selector.pause = _MOST_TURNS, 0.0
        try:
            self.run()
        finally:
            self.selector.turns = 0
        if not any(reader._has_news for reader in self.readers):
            self.selector.show(self.selector.pause)


class _Twin:
    """An object whose asynchronous twin does the work."""

    def __init__(self, twin: Any, loop: _Loop) -> None:
        self._twin = twin
        self._loop = loop

    @property
    def _usable(self) -> bool:
        return not self._loop.is_closed() and os.getpid() == self._loop.selector.process

    def _check(self) -> None:
        if not self._usable:
            why = "is closed" if self._loop.is_closed() else "belongs to the process that made it"
            raise ResourcedError(errno.ENOTCONN, f"the connection {why}", local=True)
        if self._loop.is_running() or asyncio._get_running_loop():
            raise RuntimeError("resourced.sync is used inside an event loop, or by two threads")

    def _run(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        self._check()
        self._loop.selector.show(0)  # the end of the work may leave something to do
        task = self._loop.create_task(function(*args))
        try:
            self._wait(task)
        except BaseException:  # of a handler
            if not task.done():
                task.cancel()
                self._wait(task)
            raise
        return task.result()

    def _wait(self, task: asyncio.Task[T]) -> None:
        def stop(_: asyncio.Task[T]) -> None:
            self._loop.stop()

        task.add_done_callback(stop)
        try:
            while not task.done():
                self._loop.run()
        finally:
            task.remove_done_callback(stop)


class _Signals:
    """Keeps signals from their handlers: an exception inside the loop would lose the message that is handled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._replaced: set[int] = set()
        self._arrived: list[tuple[int, FrameType | None]] = []
        if threading.current_thread() is threading.main_thread():
            for number in map(int, signal.valid_signals()):
                if callable(handler := signal.getsignal(number)):
                    self._handlers[number] = handler
            try:
                for number in self._handlers:
                    self._replaced.add(number)
                    signal.signal(number, self._arrive)
            except BaseException:  # raised by a handler that is not replaced yet
                self.restore()
                raise

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        self._arrived.append((number, frame))
        self._loop.call_soon_threadsafe(self._loop.stop)

    def restore(self) -> None:
        try:
            while self._replaced:
                number = next(iter(self._replaced))
                signal.signal(number, self._handlers[number])
                self._replaced.discard(number)
        finally:
            if self._replaced:  # the last restored handler has raised
                self.restore()

    def deliver(self) -> None:
        while self._arrived:
            number, frame = self._arrived.pop(0)
            self._handlers[number](number, frame)


class _Method(Generic[P, T]):
    """A method that runs the method of the twin inside the loop. `finish` makes the result of the twin's result."""

    def __init__(self, method: Callable[Concatenate[Any, P], Any], finish: Callable[[Any, _Loop], T]) -> None:
        self._method, self._finish = method, finish
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Callable[P, T]:
        if instance is None:
            return cast(Callable[P, T], self)
        method = getattr(instance._twin, self._method.__name__)

        def do(*args: P.args, **kwargs: P.kwargs) -> T:
            async def in_loop() -> Any:
                found = method(*args, **kwargs)
                return await found if inspect.iscoroutine(found) else found

            return self._finish(instance._run(in_loop), instance._loop)

        functools.update_wrapper(do, method)
        return do


def _waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> _Method[P, T]:
    return _Method(method, lambda result, loop: cast(T, result))


def _makes(kind: Callable[[Any, _Loop], T], method: Callable[Concatenate[Any, P], Any]) -> _Method[P, T]:
    """A method that returns the twin of what its own twin returns."""
    return _Method(method, kind)


class Reader(_Twin, Generic[R]):
    """A base class of objects to iterate over, with an end. Leaving its `with` closes it."""

    def __init__(self, twin: Any, loop: _Loop) -> None:
        super().__init__(twin, loop)
        loop.readers.add(twin)

    def close(self) -> None:
        """Closes the object; the iteration stops."""
        self._loop.readers.discard(self._twin)
        if self._usable:
            self._run(self._twin.close)

    def next(self, timeout: float | None = None) -> R | None:
        """Returns the next item, or None at the end. Raises TimeoutError after `timeout` seconds without one, which
        loses no item. With 0 it reads what has come, and does not wait."""
        if timeout is not None and timeout <= 0:
            self._check()
            self._loop.process()
            if not self._twin._has_news:
                raise TimeoutError
        item: R | None = self._run(self._twin.next, timeout)
        return item

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> R:
        try:
            item: R = self._run(self._twin.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None
        return item

    def __enter__(self) -> Self:
        self._run(self._twin.__aenter__)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Stream(Reader[dict[str, Any]]):
    __doc__ = _stream.Stream.__doc__


class Ledger(_Twin):
    __doc__ = _ledger.Ledger.__doc__

    change = _waits(_ledger.Ledger.change)
    update = _waits(_ledger.Ledger.update)
    resync = _Method(_ledger.Ledger.resync, lambda result, loop: None)

    def list(self) -> dict[_ledger.Name, _ledger.Entry]:
        """The allocations by partition and id, as of the last call that has read messages."""
        return cast(_ledger.Ledger, self._twin).list()

    def pending(self) -> _Names:
        return cast(_ledger.Ledger, self._twin).pending()

    def unknown(self) -> _Names:
        return cast(_ledger.Ledger, self._twin).unknown()


class Acquisition(Reader[_acquisition.AcquisitionEvent]):
    __doc__ = _acquisition.Acquisition.__doc__

    @property
    def resources(self) -> ResourceSet:
        """The last known inventory. Empty before the first Acquired."""
        resources: ResourceSet = self._twin.resources
        return resources

    @property
    def up(self) -> IDset:
        up: IDset = self._twin.up
        return up

    @property
    def ledger(self) -> Ledger:
        return Ledger(self._twin.ledger, self._loop)


class Journal(Reader[_journal.JournalBatch]):
    __doc__ = _journal.Journal.__doc__

    @property
    def after(self) -> int | None:
        after: int | None = self._twin.after
        return after


def _signature_of(_: Callable[Concatenate[Any, P], None]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    return lambda function: function


class Connection(_Twin):
    __doc__ = (_connection.Connection.__doc__ or "").replace("`async with`", "`with`")

    @_signature_of(_rpc.RpcConnection.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        loop = _Loop()
        try:
            super().__init__(_connection.Connection(*args, **kwargs), loop)
        except BaseException:
            loop.close()
            raise

    connect = _waits(_connection.Connection.connect)
    call = _waits(_connection.Connection.call)
    stream = _makes(Stream, _connection.Connection.stream)
    acquire = _makes(Acquisition, _connection.Connection.acquire)
    alloc = _waits(_connection.Connection.alloc)
    alloc_all = _waits(_connection.Connection.alloc_all)
    free = _waits(_connection.Connection.free)
    free_all = _waits(_connection.Connection.free_all)
    force_free = _waits(_connection.Connection.force_free)
    alloc_update = _waits(_connection.Connection.alloc_update)
    allocations = _waits(_connection.Connection.allocations)
    drain = _waits(_connection.Connection.drain)
    undrain = _waits(_connection.Connection.undrain)
    cancel_drain = _waits(_connection.Connection.cancel_drain)
    wait = _waits(_connection.Connection.wait)
    add_property = _waits(_connection.Connection.add_property)
    remove_property = _waits(_connection.Connection.remove_property)
    evict = _waits(_connection.Connection.evict)
    peers = _waits(_connection.Connection.peers)
    status = _waits(_connection.Connection.status)
    sched_status = _waits(_connection.Connection.sched_status)
    report = _waits(_connection.Connection.report)
    journal = _makes(Journal, _connection.Connection.journal)
    notify = _Method(_connection.Connection.notify, lambda result, loop: None)

    def fileno(self) -> int:
        """A descriptor for select, poll and other loops, which stays the same until close(). It is readable whenever
        process() has something to do, or next(0) of an acquisition, a journal or a stream would not raise TimeoutError:
        it stays readable until the program has taken all items. Do not read from it. After a call of another function it
        may be readable once although there is nothing to do."""
        self._check()
        return self._loop.selector.descriptor()

    def process(self) -> None:
        """Handles received messages and timers that are due, such as that of a lease, without waiting; next(0) does so,
        too."""
        self._check()
        self._loop.process()

    @property
    def uri(self) -> str:
        return str(self._twin.uri)

    @property
    def connected(self) -> bool:
        return bool(self._twin.connected)

    @property
    def has_places(self) -> bool:
        return bool(self._twin.has_places)

    def close(self) -> None:
        """Tells the daemon to drop this client's streams, and closes."""
        if not self._usable:
            return
        try:
            self._run(self._twin.close)
        except BaseException:  # raised by a handler: messages still have the linger time to leave
            self._run(self._twin.close)
            raise
        finally:
            self._run(self._loop.shutdown_default_executor)
            self._loop.close()

    def __enter__(self) -> Self:
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


#: Makes a connection for `with`, which connects and closes it.
connect = Connection
