"""The resources of a scheduler (RFC 28): the inventory and the available targets, each change of them, and both again
after a lost connection."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import secrets
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, get_args

from resourced._json import entries, member
from resourced._message import STREAMING, Response, encode_payload
from resourced._repeats import is_shut_down
from resourced._requests import Reader, Request, awaited
from resourced.allocations import Allocation, Freed, merged_news
from resourced.errors import ResourcedError
from resourced.idset import IDset
from resourced.ledger import Ledger, read_sequence
from resourced.resource_set import ResourceSet
from resourced.rpc import RpcConnection

_TOPIC = "resource.acquire"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
#: Maximum number of unread updates; further ones are merged.
_MOST_UNREAD = 64
#: How often a lease is renewed within its time.
_RENEWALS = 3
#: Why targets went down; a target may have several causes.
DownCause: TypeAlias = Literal["drained", "offline", "torpid", "excluded"]
_CAUSES: tuple[DownCause, ...] = get_args(DownCause)


@dataclass(frozen=True)
class ScheduledDrain:
    """A drain that begins later."""

    ranks: IDset
    begin: float
    until: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Acquired:
    """The inventory and the available targets, first and after each reconnection. They replace all known before."""

    resources: ResourceSet
    up: IDset
    #: The present allocations, if the acquisition requests them or has a ledger. Some may be on targets that are not
    #: in `resources`.
    allocations: list[Allocation] = field(default_factory=list)
    #: The drains that begin later, ordered by `begin`; None unless the acquisition asks for them and the daemon grants it.
    scheduled: list[ScheduledDrain] | None = None


@dataclass(frozen=True)
class Update:
    """One change. Act on all of it at once: a response may add a property, remove targets, and report others up."""

    #: Targets that are available now.
    up: IDset = field(default_factory=IDset)
    #: Targets that are not available any more: drained and crashed look the same here, `cause` tells them apart.
    #: Allocations on them stay.
    down: IDset = field(default_factory=IDset)
    #: Targets that have left for good; they are in `down`, too.
    shrink: IDset = field(default_factory=IDset)
    property_add: dict[str, IDset] = field(default_factory=dict)
    property_remove: dict[str, IDset] = field(default_factory=dict)
    #: A new expiration, 0 for none.
    expiration: float | None = None
    #: With a ledger: allocations that somebody else has freed. One that is not known may be among them.
    freed: list[Freed] = field(default_factory=list)
    #: With a ledger, and to be applied after `freed`: allocations that somebody else has made or changed. Each replaces
    #: the one of its partition and id.
    changed: list[Allocation] = field(default_factory=list)
    #: With a ledger: partition and id of each allocation whose expiration has passed. It stays until it is freed.
    expired: list[tuple[str, str]] = field(default_factory=list)
    #: With `scheduled`: all drains that begin later; None if they have not changed.
    scheduled: list[ScheduledDrain] | None = None
    #: With `cause`: why the targets of `down` went down.
    cause: dict[DownCause, IDset] = field(default_factory=dict)

    def then(self, later: Update) -> Update:
        """One update with the effect of both, one after the other."""

        def merged(first: dict[str, IDset], undone: dict[str, IDset], second: dict[str, IDset]) -> dict[str, IDset]:
            names = first.keys() | second.keys()
            every = {name: first.get(name, IDset()) - undone.get(name, "") | second.get(name, "") for name in names}
            return {name: ranks for name, ranks in every.items() if ranks}

        why = {name: ranks - later.up - later.down for name, ranks in self.cause.items()}
        return Update(
            self.up - later.down | later.up,
            self.down - later.up | later.down,
            self.shrink | later.shrink,
            merged(self.property_add, later.property_remove, later.property_add),
            merged(self.property_remove, later.property_add, later.property_remove),
            self.expiration if later.expiration is None else later.expiration,
            *merged_news((self.freed, self.changed, self.expired), (later.freed, later.changed, later.expired)),
            self.scheduled if later.scheduled is None else later.scheduled,
            {name: ranks for name in _CAUSES if (ranks := why.get(name, IDset()) | later.cause.get(name, ""))},
        )


@dataclass(frozen=True)
class Lost:
    """The connection was lost, or the daemon has ended and the next one is waited for. Allocate nothing until the next
    Acquired."""

    error: ResourcedError


AcquisitionEvent = Acquired | Update | Lost


class Acquisition(Reader[AcquisitionEvent]):
    """An acquisition. Iterate over its events. `resources` and `up` are as of the last item that was taken; `up` is empty
    while nothing is held. The iteration raises ResourcedError if the resources are refused (EBUSY, EPERM, ENOENT for an
    unknown partition), or the daemon ends the acquisition. Leaving the `async with` gives the resources back, and waits
    until they are free. One that is dropped without close() gives them back, too, with a ResourceWarning."""

    _closed = True

    def __init__(
        self,
        connection: RpcConnection,
        *,
        partition: str | None,
        allocations: bool,
        wait: bool,
        lease: float | None,
        follow_restart: bool,
        wait_for_daemon: bool,
        busy_retry: float,
        answer_timeout: float,
        extensions: Mapping[str, bool],
    ) -> None:
        self._connection = connection
        self._ledger = Ledger(self, connection, partition or "") if extensions["ledger"] else None
        given = {
            "partition": partition or None,
            # A daemon without a ledger refuses allocations, and would leave out the extension.
            "allocations": allocations or extensions["ledger"] or None,
            "extensions": [name for name, is_wanted in extensions.items() if is_wanted] or None,
            "wait": wait or None,
            "lease": lease,
            # With this token the acquisition goes on after a loss of the connection, even if the daemon has not noticed it.
            "holder": secrets.token_hex(16),
        }
        self._payload = {key: value for key, value in given.items() if value is not None}
        encode_payload(self._payload)  # raises ValueError for a name that JSON does not have
        # Wait for the next leader if a daemon of a cluster stops.
        self._follow_restart = follow_restart or connection.has_places
        self._wait_for_daemon = wait_for_daemon
        self._busy_retry = busy_retry
        # A request that waits for its turn may be answered at any time.
        self._answer_timeout = math.inf if wait else answer_timeout
        self._lease = lease
        self._renewal: asyncio.TimerHandle | None = None
        #: The first response, as long as further ones bring the rest of its allocations.
        self._partial: Acquired | None = None
        self._busy_until: float | None = None
        self._pause = _FIRST_PAUSE
        self._timer: asyncio.TimerHandle | None = None
        self._request: _AcquireRequest | None = None
        self._started = self._acquired_before = self._held = self._lost = False
        self._unread: deque[AcquisitionEvent] = deque()
        self._news = asyncio.Event()
        self._end: ResourcedError | None = None
        #: The ranks of the inventory as of the last response.
        self._known = IDset()
        self._starttime = 0.0
        self._resources = ResourceSet()
        self._up = IDset()
        self._closed = False

    @property
    def resources(self) -> ResourceSet:
        """The last known inventory. Empty before the first Acquired."""
        return self._resources.copy()

    @property
    def up(self) -> IDset:
        return self._up.copy()

    @property
    def ledger(self) -> Ledger:
        """The ledger: a view of the allocations, and functions that change them. Raises ResourcedError EINVAL without
        `ledger`."""
        if not self._ledger:
            raise ResourcedError(errno.EINVAL, "the acquisition has no ledger: acquire with ledger=True", local=True)
        return self._ledger

    async def __aenter__(self) -> Self:
        self._start()
        return self

    @property
    def _has_news(self) -> bool:
        return bool(self._closed or self._unread or self._end or not self._started)

    async def __anext__(self) -> AcquisitionEvent:
        if self._closed:
            raise StopAsyncIteration
        self._start()
        while not self._unread:
            if self._closed:
                raise StopAsyncIteration
            if self._end:
                self._up = IDset()
                raise self._end.with_traceback(None)
            self._news.clear()
            with awaited(self):
                await self._news.wait()
        event = self._unread.popleft()
        if isinstance(event, Acquired):
            self._resources, self._up = event.resources.copy(), event.up.copy()
        elif isinstance(event, Update):
            self._apply(event)
        else:
            self._up = IDset()
        return event

    def __del__(self) -> None:
        if not self._closed and not self._end and self._request:
            if self._ledger:  # its changes have nobody who waits, as that would keep this object
                end = ResourcedError(errno.ECANCELED, "the acquisition was dropped", local=True)
                self._ledger._is_held, self._ledger._end = False, end
            self._connection.drop(self._request, "an acquisition")

    async def close(self) -> None:
        self._closed = True
        self._up = IDset()
        self._leave(self._end or ResourcedError(errno.ECANCELED, "the acquisition is closed", local=True))
        if self._timer:
            self._timer.cancel()
        self._stop_renewing()
        self._unread.clear()
        self._news.set()
        if self._request:
            await self._connection.end(self._request)

    def _apply(self, update: Update) -> None:
        for name, ranks in update.property_remove.items():
            self._resources.remove_property(name, ranks & self._resources.ranks)
        for name, ranks in update.property_add.items():
            self._resources.set_property(name, ranks & self._resources.ranks)
        if update.expiration is not None:
            self._resources.expiration = update.expiration
        if update.shrink:
            self._resources.remove_ranks(update.shrink)
        self._up = self._up.union(update.up).difference(update.down, update.shrink)

    # Responses

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._send(self._wait_for_daemon)

    def _send(self, wait_for_daemon: bool) -> None:
        self._timer = None
        self._request = _AcquireRequest(self, self._payload, wait_for_daemon)
        self._request.answer_timeout = self._answer_timeout
        try:
            self._connection.submit(self._request)
        except ResourcedError as error:
            self._finish(error)
        else:
            self._renew_later()

    def _renew_later(self) -> None:
        self._stop_renewing()
        if self._lease is not None:
            pause = self._lease / _RENEWALS
            self._renewal = asyncio.get_running_loop().call_later(pause, _renew_lease, weakref.ref(self))

    def _stop_renewing(self) -> None:
        if self._renewal:
            self._renewal.cancel()
            self._renewal = None

    def _renew(self) -> None:
        """Renews the lease, as each request of the connection does."""
        with contextlib.suppress(ResourcedError):  # too much is unsent; the next one renews as well
            self._connection.notify(f"{_TOPIC}-renew")
        self._renew_later()

    def _send_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause, self._send, True)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _put(self, event: AcquisitionEvent) -> None:
        last = self._unread[-1] if self._unread else None
        if isinstance(event, Acquired):
            lost = [one for one in self._unread if isinstance(one, Lost)]
            self._unread = deque(lost[:1])
        elif isinstance(event, Update) and isinstance(last, Update) and len(self._unread) >= _MOST_UNREAD:
            self._unread.pop()
            event = last.then(event)
        self._unread.append(event)
        self._news.set()

    def _leave(self, end: ResourcedError | None = None) -> None:
        if self._ledger:
            self._ledger._leave(end)

    def _finish(self, error: ResourcedError) -> None:
        self._leave(error)
        if self._request:
            self._connection.cancel(self._request)
        self._stop_renewing()
        self._end = error
        self._news.set()

    def receive(self, response: Response) -> None:
        try:
            payload = response.payload()
            if self._held:
                update = self._read_update(payload)
                if self._ledger:
                    self._ledger._take(update.freed, update.changed, update.expired, read_sequence(payload))
                    self._ledger._forget(update.shrink)
                self._put(update)
            elif self._partial:
                self._partial.allocations.extend(self._read_allocations(payload))
                self._take_first(self._partial, payload)
            elif not self._connection.follows(payload):
                if not response.more:  # the request has ended
                    self._send_later()
            else:
                self._take_first(self._read_acquired(payload), payload)
        except ValueError as error:
            self._finish(ResourcedError(errno.EPROTO, f"{_TOPIC}: {error}", local=True))
        except ResourcedError as error:
            self._finish(error)

    def _take_first(self, acquired: Acquired, payload: Mapping[str, Any]) -> None:
        """Takes a first response, or keeps it until its last part is there."""
        if payload.get("more") is True:
            self._partial = acquired
            return
        self._partial = None
        if self._ledger:
            self._ledger._begin(acquired.allocations, acquired.resources, read_sequence(payload))
        self._put(acquired)
        self._held = self._acquired_before = True
        self._lost = False
        self._busy_until = None
        self._pause = _FIRST_PAUSE

    def fail(self, error: ResourcedError) -> None:
        self._partial = None
        shut_down = error.errno == errno.ECANCELED and is_shut_down(error) and not error.local
        if (error.errno == errno.ECONNRESET) if error.local else (shut_down and self._follow_restart):
            if not self._lost:
                self._put(Lost(error))
            self._held, self._lost = False, True
            self._leave()
            self._busy_until = None
            # Wait after a refusal: a daemon that shuts down would refuse each new request at once.
            self._send(True) if error.local else self._send_later()
        elif self._held:
            self._finish(error)
        elif error.errno == errno.EHOSTUNREACH and not error.local and (self._acquired_before or self._wait_for_daemon):
            self._send_later()  # the daemon is a standby, which may lead next
        elif error.errno == errno.EBUSY and not error.local and self._acquired_before and self._busy_may_pass():
            self._send_later()
        else:
            self._finish(error)

    def _busy_may_pass(self) -> bool:
        """Whether EBUSY may still pass: the daemon may not have noticed yet that the former connection is lost."""
        now = asyncio.get_running_loop().time()
        if self._busy_until is None:
            self._busy_until = now + self._busy_retry
        return now < self._busy_until

    def _read_acquired(self, payload: Mapping[str, Any]) -> Acquired:
        resources = ResourceSet(member(payload, "resources", dict))
        up = IDset(member(payload, "up", str))
        self._known, self._starttime = resources.ranks, resources.starttime
        return Acquired(resources, self._check("up", up), self._read_allocations(payload), _read_scheduled(payload))

    @staticmethod
    def _read_allocations(payload: Mapping[str, Any]) -> list[Allocation]:
        return [Allocation.read(one) for one in entries(payload, "allocations")]

    def _read_update(self, payload: Mapping[str, Any]) -> Update:
        sets = [IDset(member(payload, key, str)) if key in payload else IDset() for key in ("up", "down", "shrink")]
        up, down, shrink = (self._check(key, ranks) for key, ranks in zip(("up", "down", "shrink"), sets))
        add, remove, why = (self._read_sets(payload, key) for key in ("property-add", "property-remove", "cause"))
        for name in add:
            ResourceSet().set_property(name)  # checks the name
        expiration = payload.get("expiration")
        if expiration is not None:
            times = ResourceSet()
            times.starttime = self._starttime
            times.expiration = expiration  # checks the time
            expiration = times.expiration
        self._known.subtract(shrink)
        freed, changed = [Freed.read(one) for one in entries(payload, "freed")], self._read_allocations(payload)
        expired = [(member(one, "partition", str), member(one, "id", str)) for one in entries(payload, "expired")]
        cause = {name: why[name] for name in _CAUSES if name in why}
        later = _read_scheduled(payload)
        return Update(up, down | shrink, shrink, add, remove, expiration, freed, changed, expired, later, cause)

    def _read_sets(self, payload: Mapping[str, Any], key: str) -> dict[str, IDset]:
        texts = member(payload, key, dict) if key in payload else {}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ValueError(f"{key}: a value is not a string")
        return {name: self._check(key, IDset(text)) for name, text in texts.items()}

    def _check(self, key: str, ranks: IDset) -> IDset:
        if not self._known.includes(ranks):
            raise ValueError(f"{key}: targets {ranks - self._known} are not among the resources")
        return ranks


def _read_scheduled(payload: Mapping[str, Any]) -> list[ScheduledDrain] | None:
    def read(one: Any) -> ScheduledDrain:
        ranks, begin = IDset(member(one, "idset", str)), member(one, "from", float)
        until = member(one, "until", float) if "until" in one else None
        return ScheduledDrain(ranks, begin, until, member(one, "reason", str) if "reason" in one else None)

    return [read(one) for one in entries(payload, "scheduled")] if "scheduled" in payload else None


def _renew_lease(of: weakref.ref[Acquisition]) -> None:
    """Renews a lease, unless the acquisition was dropped."""
    if acquisition := of():
        acquisition._renew()


class _AcquireRequest(Request):
    def __init__(self, acquisition: Acquisition, payload: Mapping[str, Any], wait_for_daemon: bool) -> None:
        super().__init__(_TOPIC, payload, flags=STREAMING, wait_for_daemon=wait_for_daemon)
        self._acquisition = weakref.ref(acquisition)

    def receive(self, response: Response) -> None:
        if acquisition := self._acquisition():
            acquisition.receive(response)

    def fail(self, error: ResourcedError) -> None:
        if acquisition := self._acquisition():
            acquisition.fail(error)

