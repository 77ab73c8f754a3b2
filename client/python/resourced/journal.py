"""The events of the resources (RFC 44), and the position of a consumer in them."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resourced._json import member
from resourced._repeats import is_standby_refusal
from resourced._requests import Reader
from resourced.errors import ResourcedError
from resourced.resource_set import ResourceSet
from resourced.rpc import RpcConnection
from resourced.stream import Stream

_TOPIC = "resource.journal"
_FIRST_PAUSE, _LONGEST_PAUSE, _SHUT_DOWN_PAUSE = 0.02, 1.0, 0.1


@dataclass(frozen=True)
class Event:
    timestamp: float
    name: str
    context: dict[str, Any]


@dataclass(frozen=True)
class JournalBatch:
    #: Events in order; empty once, at the end of the history.
    events: list[Event]
    #: The number of the last event: `after` of a journal that continues after this batch. None in a Flux instance that is
    #: not attached to a daemon.
    last: int | None
    #: The inventory that a `resource-define` in the batch defines.
    resources: ResourceSet | None = None


class Journal(Reader[JournalBatch]):
    """A journal. Iterate over its batches of events. After a lost connection, or if the reader was too slow for this
    side or for the daemon, it continues with the next event. `after` is the cursor: the `last` of the batch that was
    taken last; keep it when the batch is handled. Raises ResourcedError; the iteration stops when the daemon stops,
    except with `follow_restart` or several addresses."""

    def __init__(
        self,
        connection: RpcConnection,
        given: Mapping[str, Any],
        *,
        after: int | None,
        follow_restart: bool,
    ) -> None:
        self.after = after
        self._connection = connection
        self._payload = {key: value for key, value in given.items() if value is not None}
        # Wait for the next leader if a daemon of a cluster stops.
        self._follow_restart = follow_restart or connection.has_places
        self._stream: Stream | None = None
        #: Set when the next request may be sent.
        self._may_ask = asyncio.Event()
        self._may_ask.set()
        self._timer: asyncio.TimerHandle | None = None
        self._pause = _FIRST_PAUSE
        self._interrupted = self._caught_up = self._any = self._closed = False

    @property
    def _has_news(self) -> bool:
        return self._closed or (self._stream._has_news if self._stream else self._may_ask.is_set())

    def _ask_again(self, pause: float) -> None:
        self._interrupted, self._stream = True, None
        if pause:
            self._may_ask.clear()
            self._timer = asyncio.get_running_loop().call_later(pause, self._may_ask.set)

    async def __anext__(self) -> JournalBatch:
        while not self._closed:
            if not self._stream:
                await self._may_ask.wait()
                if self._closed:
                    break
                payload = self._payload | ({} if self.after is None else {"after": self.after})
                self._stream = self._connection.stream(_TOPIC, payload, wait_for_daemon=self._interrupted)
            try:
                batch = _read(await self._stream.__anext__())
            except StopAsyncIteration:
                if self._closed or not self._follow_restart or (self._any and self.after is None):
                    raise
                # Wait after a refusal: a daemon that shuts down would refuse each new request at once.
                self._ask_again(_SHUT_DOWN_PAUSE)
                continue
            except ResourcedError as error:
                passes = error.errno == errno.EOVERFLOW or (error.local and error.errno == errno.ECONNRESET)
                # A standby may not have the event of the cursor yet.
                is_early = not error.local and (error.errno == errno.EAGAIN or is_standby_refusal(error))
                may_begin_again = not self._any and (self._connection.has_places or not is_early)
                # Fail without a cursor: the events would come again.
                if not (passes or is_early) or (self.after is None and not may_begin_again):
                    raise
                self._ask_again(self._pause if is_early else 0)
                if is_early:
                    self._pause = min(2 * self._pause, _LONGEST_PAUSE)
                continue
            self._pause = _FIRST_PAUSE
            self._any = True
            if batch.last is not None:
                self.after = batch.last
            if batch.events or not self._caught_up:
                self._caught_up = self._caught_up or not batch.events
                return batch
        raise StopAsyncIteration

    async def close(self) -> None:
        self._closed = True
        if self._timer:
            self._timer.cancel()
        self._may_ask.set()
        if self._stream:
            await self._stream.close()


def _read(payload: Mapping[str, Any]) -> JournalBatch:
    def malformed(what: str) -> ResourcedError:
        return ResourcedError(errno.EPROTO, f"{_TOPIC}: {what}", local=True)

    listed, last = payload.get("events"), payload.get("last")
    if not isinstance(listed, list) or not isinstance(last, int | None) or isinstance(last, bool):
        raise malformed("a response without events")
    events = []
    for one in listed:
        if not isinstance(one, dict):
            raise malformed("an event is not an object")
        try:
            timestamp, name = member(one, "timestamp", float), member(one, "name", str)
            events.append(Event(timestamp, name, member(one, "context", dict) if "context" in one else {}))
        except ValueError as error:
            raise malformed(f"an event: {error}") from None
    try:
        return JournalBatch(events, last, ResourceSet(payload["R"]) if "R" in payload else None)
    except ValueError as error:
        raise malformed(f"R: {error}") from None
