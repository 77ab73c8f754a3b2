"""The functions of `resourced` for programs without asyncio: each function waits for its result.

A connection has an event loop of its own, which runs inside these functions, in the thread of the caller. Between calls
nothing is read; messages that the daemon sends meanwhile are read by the next call. A program with other things to wait
for as well gives a connection to select or poll, as it has a fileno(). Inside a running event loop use `resourced`.

While a function waits in the main thread, handlers of signals run between two turns of its loop. If a handler raises,
as that of Ctrl-C does, the wait ends: nothing is sent later, and no message is lost. A connection belongs to its process:
a forked child can only close it, without effect on the parent.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import inspect
import os
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from resourced import acquisition as _acquisition
from resourced import connection as _connection
from resourced import journal as _journal
from resourced import ledger as _ledger
from resourced import rpc as _rpc
from resourced import stream as _stream
from resourced._sync_loop import Loop
from resourced.errors import ResourcedError
from resourced.idset import IDset
from resourced.resource_set import ResourceSet

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
_Names = list[_ledger.Name]


class _Twin:
    """An object whose asynchronous twin does the work."""

    def __init__(self, twin: Any, loop: Loop) -> None:
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
        return self._loop.complete(function, *args)


class _Method(Generic[P, T]):
    """A method that runs the method of the twin inside the loop. `finish` makes the result of the twin's result."""

    def __init__(self, method: Callable[Concatenate[Any, P], Any], finish: Callable[[Any, Loop], T]) -> None:
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


def _makes(kind: Callable[[Any, Loop], T], method: Callable[Concatenate[Any, P], Any]) -> _Method[P, T]:
    """A method that returns the twin of what its own twin returns."""
    return _Method(method, kind)


class Reader(_Twin, Generic[R]):
    """A base class of objects to iterate over, with an end. Leaving its `with` closes it."""

    def __init__(self, twin: Any, loop: Loop) -> None:
        super().__init__(twin, loop)
        #: The item that was taken last, until it is returned: the next call has it if a handler of a signal raises.
        self._taken: list[R] = []
        loop.readers.add(self)

    @property
    def _has_news(self) -> bool:
        return bool(self._taken or self._twin._has_news)

    def _take(self, function: Callable[..., Coroutine[Any, Any, R | None]], *args: Any) -> R | None:
        async def take() -> None:
            if not self._taken and (item := await function(*args)) is not None:
                self._taken.append(item)

        self._run(take)
        return self._taken.pop() if self._taken else None

    def close(self) -> None:
        """Closes the object; the iteration stops."""
        self._loop.readers.discard(self)
        self._taken.clear()
        if self._usable:
            self._run(self._twin.close)

    def next(self, timeout: float | None = None) -> R | None:
        """Returns the next item, or None at the end. Raises TimeoutError after `timeout` seconds without one, which
        loses no item. With 0 it reads what has come, and does not wait."""
        if timeout is not None and timeout <= 0:
            self._check()
            self._loop.process()
            if not self._has_news:
                raise TimeoutError
        return self._take(self._twin.next, timeout)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> R:
        try:
            return cast(R, self._take(self._twin.__anext__))
        except StopAsyncIteration:
            raise StopIteration from None

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
        loop = Loop()
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
