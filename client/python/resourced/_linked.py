"""The link of a connection: attempts to connect, the requests that are sent over it, and those that fail with it."""

from __future__ import annotations

import asyncio
import copy
import errno
import functools
import math
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from resourced._link import Context, Failure, Link, LinkOptions, LocalLink, Owner, ZmqLink
from resourced._message import NORESPONSE, STREAMING, Response, request_parts
from resourced._places import LastLeader, LeaderSearch, Patience
from resourced._reachability import explain
from resourced._repeats import CHANGES, Outgoing, Repeats, cannot_commit, is_of_standby, is_shut_down
from resourced._requests import Request
from resourced._tcp_link import TcpLink
from resourced.address import Endpoint, Keys
from resourced.errors import ResourcedError

#: Maximum number of requests that are sent and not answered, others wait; and of messages that wait when notify() adds
#: one.
MAX_PENDING = 65536
#: Topics with requests that TOPIC-cancel ends.
_CANCELLABLE = ("resource.wait",)


def _lose(connection: "weakref.ref[LinkedConnection]") -> None:
    if found := connection():
        found._lose()


def _probe(connection: "weakref.ref[LinkedConnection]") -> None:
    if found := connection():
        found._probe_link()


class _Probe(Request):
    """The question whether the daemon still leads. Any answer of the daemon is a sign of life."""

    def __init__(self, connection: LinkedConnection) -> None:
        super().__init__("resource.leader", None)
        self._connection = weakref.ref(connection)

    def receive(self, response: Response) -> None:
        if connection := self._connection():
            connection._probe_later()

    def fail(self, error: ResourcedError) -> None:
        if not error.local and (connection := self._connection()):
            connection._probe_later()


class LinkedConnection:
    """The part of a connection that has the link. `pauses` are the first and the longest between attempts."""

    _closed = True

    def __init__(
        self,
        places: Sequence[Endpoint],
        keys: Keys | None,
        options: LinkOptions,
        *,
        connect_timeout: float,
        failover_timeout: float,
        pauses: tuple[float, float],
    ) -> None:
        self._places = places
        self._keys = keys
        self._link_options = options
        self._connect_timeout = connect_timeout
        self._failover_timeout = failover_timeout
        self._retry_first, self._retry_most = pauses
        self._pause = self._retry_first
        self._last_leader = LastLeader()
        self._search: LeaderSearch | None = None
        self._repeats = Repeats(failover_timeout)
        self._context: Context | None = None
        self._link: Link | None = None
        self._connected = False
        self._since = -math.inf
        self._patience: Patience | None = None
        self._retry: asyncio.TimerHandle | None = None
        #: Timer during which questions alone are sent, because the daemon cannot make changes at present.
        self._hold: asyncio.TimerHandle | None = None
        self._hold_for = self._retry_first
        #: Timer until the link is dropped, because the daemon stops or does not lead. Nothing more is sent to it, and
        #: answers on their way are read.
        self._leaving: asyncio.TimerHandle | None = None
        #: Over a link without heartbeats to a daemon of a cluster: the timer of the next probe, and the time that the
        #: present one has for its answer.
        self._next_probe: asyncio.TimerHandle | None = None
        self._probing: Patience | None = None
        #: Number of responses, now and at the last look for further ones before the link is dropped.
        self._received, self._received_before = 0, -1
        #: Requests and connect() calls that have failed, while the reason is looked for.
        self._failing: dict[asyncio.Task[None], tuple[list[Request], list[asyncio.Future[None]]]] = {}
        #: Calls of connect() that wait.
        self._connecting: set[asyncio.Future[None]] = set()
        self._outgoing = Outgoing()
        #: Sent requests by matchtag; None for those whose caller no longer waits.
        self._pending: dict[int, Request | None] = {}
        self._last_tag = 0

    @property
    def uri(self) -> str:
        return ",".join(place.uri for place in self._places)

    @property
    def connected(self) -> bool:
        return self._connected

    @property
    def has_places(self) -> bool:
        """Whether `uri` has several endpoints, those of a cluster."""
        return len(self._places) > 1

    # Requests

    def _notify(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:
        if self._connected:
            self._outgoing.put(Request(topic, payload, flags=NORESPONSE))
            self._flush()

    def cancel(self, request: Request) -> None:
        """Cancels a request: neither of its functions is called any more, and the daemon is asked to end it if it can
        be ended."""
        request.stop_timer()
        if request.matchtag is None:
            self._outgoing.remove(request)
        elif self._pending.get(request.matchtag) is request:
            # The matchtag stays in use until the last response.
            self._pending[request.matchtag] = None
            if request.flags & STREAMING or request.topic in _CANCELLABLE:
                self._notify(f"{request.topic}-cancel", {"matchtag": request.matchtag})

    def _flush(self) -> None:
        while self._connected and self._link and not self._leaving and (request := self._outgoing.first):
            tag = 0
            if not request.flags & NORESPONSE:
                if len(self._pending) >= MAX_PENDING:
                    return
                tag = self._free_tag()
            if not self._link.send(request_parts(request.topic, request.payload, tag, request.flags)):
                return
            self._outgoing.pop()
            if tag:
                request.matchtag = self._last_tag = tag
                self._pending[tag] = request
                self._repeats.sent(request)
                if math.isfinite(request.answer_timeout):
                    self._time_answer(request)

    def _flush_last(self) -> None:
        """Sends the notices that wait for room in a Unix socket: its end waits until they have left. ZeroMQ takes no
        message beyond its bound."""
        while isinstance(self._link, LocalLink) and not self._leaving and (notice := self._outgoing.first):
            self._outgoing.pop()
            self._link.send_last(request_parts(notice.topic, notice.payload, 0, notice.flags))

    def _free_tag(self) -> int:
        tag = self._last_tag % 0xFFFFFFFE + 1
        while tag in self._pending:
            tag = tag % 0xFFFFFFFE + 1
        return tag

    def _time_answer(self, request: Request) -> None:
        weak: LinkedConnection = weakref.proxy(self)

        def no_answer() -> None:
            weak.cancel(request)  # the daemon would keep what a late answer gives
            text = f"{request.topic}: no answer from {weak.uri} within {request.answer_timeout:g} s"
            request.fail(ResourcedError(errno.ETIMEDOUT, text, local=True))

        request.late = asyncio.get_running_loop().call_later(request.answer_timeout, no_answer)

    @staticmethod
    def _fail(requests: Iterable[Request], futures: Iterable[asyncio.Future[None]], error: ResourcedError) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(copy.copy(error))  # each task adds its own traceback
        for request in requests:
            if not request.flags & NORESPONSE:
                request.fail(copy.copy(error))

    # The link

    @property
    def _is_trying(self) -> bool:
        """Whether there is a connection, or an attempt to make one."""
        return bool(self._link or self._search)

    def _start(self) -> None:
        # The loop refers to links, and these to the connection only weakly, so that one that is dropped can end.
        weak: LinkedConnection = weakref.proxy(self)
        if self.has_places:
            self._search = LeaderSearch(self._places, self._last_leader, weak,
                                        lambda owner, endpoint: weak._make_link(owner, endpoint),
                                        lambda link: weak._follow(link), lambda: weak._refuse(),
                                        attempt=self._connect_timeout, longest=self._failover_timeout,
                                        pauses=(self._retry_first, self._retry_most))
        else:
            self._link = self._make_link(weak, self._places[0])
            self._patience = Patience(self._connect_timeout, lambda: self.link_failed(Failure.TIMED_OUT))
        # Cancel the timer only now: without descriptors there is no link, and the next attempt has to be made.
        if self._retry:
            self._retry.cancel()
            self._retry = None

    def _make_link(self, owner: Owner, endpoint: Endpoint) -> Link:
        if endpoint.scheme == "local":
            return LocalLink(owner, endpoint, self._link_options)
        self._context = self._context or Context()
        if endpoint.scheme == "tcp":
            return TcpLink(owner, self._context, endpoint, self._keys, self._link_options, self._connect_timeout)
        return ZmqLink(owner, self._context, endpoint, self._keys, self._link_options)

    def _follow(self, link: Link) -> None:
        self._link, self._search = link, None
        self._begin()
        if isinstance(link, LocalLink) and self._link is link:  # others have heartbeats of ZeroMQ
            self._probe_later()

    def _probe_later(self) -> None:
        self._end_probe()
        interval = self._link_options.heartbeat_interval
        if self._connected and math.isfinite(interval):
            self._next_probe = asyncio.get_running_loop().call_later(interval, _probe, weakref.ref(self))

    def _probe_link(self) -> None:
        """Asks whether the daemon still leads. One that does not answer in time is left."""
        probe, tag = _Probe(self), self._free_tag()
        is_full = len(self._pending) >= MAX_PENDING
        if is_full or not self._link or not self._link.send(request_parts(probe.topic, probe.payload, tag, 0)):
            return self._probe_later()
        probe.matchtag = self._last_tag = tag
        self._pending[tag] = probe
        weak = weakref.ref(self)
        self._probing = Patience(self._link_options.heartbeat_timeout, lambda: _lose(weak))

    def _end_probe(self) -> None:
        if self._next_probe:
            self._next_probe.cancel()
        if self._probing:
            self._probing.end()
        self._next_probe = self._probing = None

    def _refuse(self) -> None:
        assert self._search
        why = functools.partial(self._search.why, self._keys)
        self._search = None
        requests, futures = self._outgoing.take(lambda one: True), [*self._connecting]
        self._connecting.clear()
        if requests or futures:
            self._fail_with(why, requests, futures)

    def _drop_link(self, linger: float = 0) -> list[Request]:
        """Drops the link. Returns the requests that were sent."""
        if self._patience:
            self._patience.end()
            self._patience = None
        self._end_hold()
        self._end_probe()
        if self._leaving:
            self._leaving.cancel()
            self._leaving = None
        if self._link:
            self._link.close(linger)
        self._link = None
        self._connected = False
        sent = [request for request in self._pending.values() if request]
        for request in sent:
            request.stop_timer()
        self._pending.clear()
        return sent

    def _retry_later(self) -> None:
        if self._closed or self._retry:
            return
        self._retry = asyncio.get_running_loop().call_later(self._pause, self._try_again)
        self._pause = min(2 * self._pause, self._retry_most)

    def _try_again(self) -> None:
        self._retry = None
        if self._is_trying or not (self._outgoing or self._connecting):
            return
        try:
            self._start()
        except ResourcedError:
            self._retry_later()  # no descriptors left, for example

    def link_connected(self) -> None:
        self._begin()

    def _begin(self) -> None:
        if self._patience:
            self._patience.end()
            self._patience = None
        self._connected = True
        self._since = asyncio.get_running_loop().time()
        for future in self._connecting:
            if not future.done():
                future.set_result(None)
        self._flush()

    def link_failed(self, failure: Failure) -> None:
        """Handles the failure of the only endpoint."""
        self._drop_link()
        requests = self._outgoing.take(lambda one: failure.is_final or not one.wait_for_daemon)
        if self._outgoing:
            self._retry_later()
        futures = [future for future in self._connecting if not future.done()]
        self._connecting.clear()
        if requests or futures:
            self._fail_with(lambda: explain(failure, self._places[0], self._keys), requests, futures)

    def _fail_with(
        self, reason: Callable[[], Awaitable[ResourcedError]], requests: list[Request], futures: list[asyncio.Future[None]]
    ) -> None:
        async def fail() -> None:
            self._fail(requests, futures, await reason())

        task = asyncio.get_running_loop().create_task(fail())
        self._failing[task] = (requests, futures)
        task.add_done_callback(lambda done: self._failing.pop(done))

    def follows(self, acquired: Mapping[str, Any]) -> bool:
        """Whether the daemon with this answer to an acquire may be followed. If not, its connection is ended."""
        if self._last_leader.allows(acquired):
            self._last_leader.become(acquired)
            return True
        self._lose()
        return False

    def _leave(self) -> None:
        """Gives a daemon that stops the time of an attempt for the answers to other requests."""
        if not self._leaving:
            weak = weakref.ref(self)
            self._leaving = asyncio.get_running_loop().call_later(self._connect_timeout, _lose, weak)

    def _lose(self) -> None:
        """Drops the link once the responses that have arrived are read: when a turn of the loop brings no further one."""
        if self._leaving:
            self._leaving.cancel()
        if self._received == self._received_before:
            return self.link_lost()
        self._received_before = self._received
        self._leaving = asyncio.get_running_loop().call_later(0, _lose, weakref.ref(self))

    def link_lost(self) -> None:
        sent = self._drop_link()
        again = [one for one in sent if self.has_places and self._repeats.survives_loss(one)]
        self._send_again(again)
        waiting = self._outgoing.take(lambda one: not one.wait_for_daemon)
        requests = [*(one for one in sent if one not in again), *waiting]
        # Pauses grow if a daemon ends each connection at once.
        if asyncio.get_running_loop().time() - self._since >= self._retry_most:
            self._pause = self._retry_first
        self._retry_later()
        error = ResourcedError(errno.ECONNRESET, f"lost the connection to the daemon at {self.uri}", local=True)
        self._fail(requests, (), error)

    def _send_again(self, requests: Iterable[Request]) -> None:
        kept = [*requests]
        for request in kept:
            request.matchtag = None
        self._outgoing.put_back(kept)

    def _put_off(self, request: Request, error: ResourcedError) -> bool:
        """Handles an error from a daemon of a cluster. Keeps a request for the next leader, or for later; returns False if
        the request ends with the error."""
        has_ended, does_not_lead = is_shut_down(error), is_of_standby(request.topic, error)
        if has_ended:
            self._leave()
        elif does_not_lead:
            self._lose()
        if request.flags & STREAMING and (has_ended or does_not_lead):
            # An acquisition and a journal continue at the next leader, as after a loss.
            why = "stops" if has_ended else "lost leadership"
            request.fail(ResourcedError(errno.ECONNRESET, f"the daemon at {self.uri} {why}", local=True))
            return True
        if request.flags & STREAMING or not self._repeats.survives_error(request, error):
            return False
        if cannot_commit(request, error):
            self._end_hold()
            self._outgoing.hold()
            self._hold = asyncio.get_running_loop().call_later(self._hold_for, self._go_on)
            self._hold_for = min(2 * self._hold_for, self._retry_most)
        self._send_again([request])
        return True

    def _end_hold(self) -> None:
        if self._hold:
            self._hold.cancel()
            self._hold = None
        self._outgoing.end_hold()

    def _go_on(self) -> None:
        self._end_hold()
        self._flush()

    def link_response(self, response: Response) -> None:
        self._received += 1
        if response.matchtag not in self._pending:
            return
        request = self._pending[response.matchtag]
        if request:
            request.stop_timer()
        if not response.more:
            del self._pending[response.matchtag]
        if request and response.errnum:
            error = response.error()
            if not (self.has_places and self._put_off(request, error)):
                request.fail(error)
        elif request:
            if request.topic in CHANGES:
                self._hold_for = self._retry_first
            request.receive(response)
        if not response.more:
            self._flush()

    def link_room(self) -> None:
        self._flush()
