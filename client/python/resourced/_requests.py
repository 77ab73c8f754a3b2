"""Requests, and the base class of objects to iterate over."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from resourced._message import Response, encode_payload
from resourced.errors import ResourcedError

T_co = TypeVar("T_co", covariant=True)
_TOPIC = re.compile(r"[!-~]{1,255}")
#: Objects on which a task waits. The loop refers neither to a task that waits nor to a connection that is not used.
_awaited: dict[int, object] = {}


@contextlib.contextmanager
def awaited(one: object) -> Iterator[None]:
    """Keeps an object, and so the task that waits for it, until the wait ends."""
    key = id(waiter := (one,))
    _awaited[key] = waiter
    try:
        yield
    finally:
        del _awaited[key]


def in_loop(loop: asyncio.AbstractEventLoop | None, work: Callable[[], object]) -> None:
    """Does some work in the thread of a loop; for finalizers, which run in any thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed
        if loop and not loop.is_closed() and asyncio._get_running_loop() is not loop:
            loop.call_soon_threadsafe(work)
        else:
            work()


class Request:
    """A request: of call(), of a stream, or of an acquisition. One of the two functions is called for each response, from
    the event loop, until the last."""

    def __init__(self, topic: str, payload: Mapping[str, Any] | None, *, flags: int = 0, wait_for_daemon: bool = False) -> None:
        if not isinstance(topic, str) or not isinstance(payload, Mapping | None):
            raise TypeError(f"{topic!r}: a request has a topic, and an object or None as its payload")
        if not _TOPIC.fullmatch(topic):
            raise ValueError(f"{topic!r}: a topic has 1 to 255 printable characters of ASCII without blanks")
        self.topic = topic
        self.payload = encode_payload(payload)
        self.flags = flags
        self.wait_for_daemon = wait_for_daemon
        #: The time for the last response, which the sender measures.
        self.timeout = math.inf
        #: The time for the first response from when the request is sent, and its timer.
        self.answer_timeout = math.inf
        self.late: asyncio.TimerHandle | None = None
        #: The matchtag; set when the request is sent.
        self.matchtag: int | None = None
        #: Number of the request in the order of the calls; 0 for messages that get no response.
        self.number = 0
        #: How often the answer was lost, and the reason and the time of the daemon's first refusal to carry it out.
        self.losses = 0
        self.refusal: ResourcedError | None = None
        self.refused_at = 0.0

    def stop_timer(self) -> None:
        if self.late:
            self.late.cancel()
            self.late = None

    def receive(self, response: Response) -> None:
        """Receives a response without an error; the last one if `response.more` is false."""

    def fail(self, error: ResourcedError) -> None:
        """Receives the error of the last response, or a failure of this side."""


class Call(Request):
    def __init__(self, topic: str, payload: Mapping[str, Any] | None, wait_for_daemon: bool) -> None:
        super().__init__(topic, payload, wait_for_daemon=wait_for_daemon)
        self.future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    def receive(self, response: Response) -> None:
        if not self.future.done():
            self.future.set_result(response)

    def fail(self, error: ResourcedError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class End(Request):
    """Replaces a cancelled request until its last response."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic, None)
        self.reached = asyncio.Event()

    def receive(self, response: Response) -> None:
        if not response.more:
            self.reached.set()

    def fail(self, error: ResourcedError) -> None:
        self.reached.set()


class Reader(Generic[T_co]):
    """A base class of objects to iterate over, with an end. Leaving its `async with` closes it."""

    async def __anext__(self) -> T_co:
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def next(self, timeout: float | None = None) -> T_co | None:
        """Returns the next item, or None at the end. Raises TimeoutError after `timeout` seconds without one, which
        loses no item."""
        try:
            async with asyncio.timeout(timeout):
                return await self.__anext__()
        except StopAsyncIteration:
            return None

    @property
    def _has_news(self) -> bool:
        """Whether __anext__() has something to do before it waits for a message: to return, to raise, or to begin."""
        raise NotImplementedError

    async def close(self) -> None:
        """Closes the object; the iteration stops."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
