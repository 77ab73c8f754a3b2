"""The functions of `resourced` for programs without asyncio: each function waits for its result.

A connection has an event loop of its own, which runs inside these functions, in the thread of the caller. Between calls
nothing is read; messages that the daemon sends meanwhile are read by the next call. Inside a running event loop use
`resourced`.

While a function waits in the main thread, handlers of signals run between two turns of its loop. If a handler raises,
as that of Ctrl-C does, the wait ends, and no message is lost. A connection belongs to its process: a forked child can
only close it, without effect on the parent.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import inspect
import os
import selectors
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType, TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

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


class _Twin:
    """An object whose asynchronous twin does the work."""

    def __init__(self, twin: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._twin = twin
        self._loop = loop
        self._process = os.getpid()

    @property
    def _usable(self) -> bool:
        return not self._loop.is_closed() and os.getpid() == self._process

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._usable:
            work.close()
            why = "is closed" if self._loop.is_closed() else "belongs to the process that made it"
            raise ResourcedError(errno.ENOTCONN, f"the connection {why}", local=True)
        if self._loop.is_running() or asyncio._get_running_loop():
            work.close()
            raise RuntimeError("resourced.sync is used inside an event loop, or by two threads")
        task = self._loop.create_task(work)
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
                signals = _Signals(self._loop)
                try:
                    self._loop.run_forever()
                finally:
                    signals.restore()
                signals.deliver()
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


def _like_method(method: Callable[..., Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Does the same as functools.wraps for a bound function."""

    def named(function: Callable[P, T]) -> Callable[P, T]:
        functools.update_wrapper(function, method)
        signature = inspect.signature(method)
        setattr(function, "__signature__", signature.replace(parameters=list(signature.parameters.values())[1:]))
        del function.__wrapped__  # type: ignore[attr-defined]
        return function

    return named


class _Waits(Generic[P, T]):
    """A method that waits for the coroutine of its twin."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: _Twin, owner: type) -> Callable[P, T]: ...
    def __get__(self, instance: _Twin | None, owner: type) -> Self | Callable[P, T]:
        if instance is None:
            return self
        one = instance

        @_like_method(self._method)
        def wait(*args: P.args, **kwargs: P.kwargs) -> T:
            work: Coroutine[Any, Any, T] = getattr(one._twin, self._method.__name__)(*args, **kwargs)
            return one._run(work)

        return wait


class _Makes(Generic[P, T]):
    """A method that returns the twin of what its own twin returns."""

    def __init__(self, kind: type[T], method: Callable[Concatenate[Any, P], Any]) -> None:
        self._kind: Callable[[Any, asyncio.AbstractEventLoop], T] = kind
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: _Twin, owner: type) -> Callable[P, T]: ...
    def __get__(self, instance: _Twin | None, owner: type) -> Self | Callable[P, T]:
        if instance is None:
            return self
        one = instance

        @_like_method(self._method)
        def make(*args: P.args, **kwargs: P.kwargs) -> T:
            async def in_loop() -> Any:
                return getattr(one._twin, self._method.__name__)(*args, **kwargs)

            return self._kind(one._run(in_loop()), one._loop)

        return make


class Reader(_Twin, Generic[R]):
    """A base class of objects to iterate over, with an end. Leaving its `with` closes it."""

    def close(self) -> None:
        """Closes the object; the iteration stops."""
        if self._usable:
            self._run(self._twin.close())

    def next(self, timeout: float | None = None) -> R | None:
        """Returns the next item, or None at the end. Raises TimeoutError after `timeout` seconds without one, which
        loses no item."""
        item: R | None = self._run(self._twin.next(timeout))
        return item

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> R:
        try:
            item: R = self._run(self._twin.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        return item

    def __enter__(self) -> Self:
        self._run(self._twin.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Stream(Reader[dict[str, Any]]):
    __doc__ = _stream.Stream.__doc__


class Ledger(_Twin):
    __doc__ = _ledger.Ledger.__doc__

    change = _Waits(_ledger.Ledger.change)
    update = _Waits(_ledger.Ledger.update)

    def list(self) -> dict[_ledger.Name, _ledger.Entry]:
        """The allocations by partition and id, as of the last call that has read messages."""
        return cast(_ledger.Ledger, self._twin).list()

    def pending(self) -> _Names:
        return cast(_ledger.Ledger, self._twin).pending()

    def unknown(self) -> _Names:
        return cast(_ledger.Ledger, self._twin).unknown()

    def resync(self) -> None:
        cast(_ledger.Ledger, self._twin).resync()


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
        # Use poll instead of epoll, which a forked child would share with its parent.
        loop = asyncio.SelectorEventLoop(selectors.PollSelector())
        try:
            super().__init__(_connection.Connection(*args, **kwargs), loop)
        except BaseException:
            loop.close()
            raise

    connect = _Waits(_connection.Connection.connect)
    call = _Waits(_connection.Connection.call)
    stream = _Makes(Stream, _connection.Connection.stream)
    acquire = _Makes(Acquisition, _connection.Connection.acquire)
    alloc = _Waits(_connection.Connection.alloc)
    alloc_all = _Waits(_connection.Connection.alloc_all)
    free = _Waits(_connection.Connection.free)
    free_all = _Waits(_connection.Connection.free_all)
    force_free = _Waits(_connection.Connection.force_free)
    alloc_update = _Waits(_connection.Connection.alloc_update)
    allocations = _Waits(_connection.Connection.allocations)
    drain = _Waits(_connection.Connection.drain)
    undrain = _Waits(_connection.Connection.undrain)
    cancel_drain = _Waits(_connection.Connection.cancel_drain)
    wait = _Waits(_connection.Connection.wait)
    status = _Waits(_connection.Connection.status)
    sched_status = _Waits(_connection.Connection.sched_status)
    report = _Waits(_connection.Connection.report)
    journal = _Makes(Journal, _connection.Connection.journal)

    def notify(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:
        """Sends a message that gets no response; it is dropped if there is no connection."""

        async def in_loop() -> None:
            self._twin.notify(topic, payload)

        self._run(in_loop())

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
            self._run(self._twin.close())
        except BaseException:  # raised by a handler: messages still have the linger time to leave
            self._run(self._twin.close())
            raise
        finally:
            self._run(self._loop.shutdown_default_executor())
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
