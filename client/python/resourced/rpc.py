"""A connection to the daemon for asyncio: remote procedure calls as of RFC 6, streams included.

The connection is made when something is sent. If the attempt fails, the requests that wait to be sent fail, except
those with `wait_for_daemon`, for which new attempts are made until they can be sent, or until the daemon refuses this
client's key or user. When an established connection is lost, every request that was sent fails with a local ECONNRESET;
the next one makes a new connection. The requests of a connection with several endpoints wait for the leader, and some
are sent again (_repeats.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import errno
import functools
import itertools
import math
import os
import warnings
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import zmq

from resourced._link import Context, Failure, Link, LinkOptions, LocalLink, Owner, ZmqLink
from resourced._message import NORESPONSE, STREAMING, Response, request_parts
from resourced._places import LastLeader, LeaderSearch, Patience, none_leads
from resourced._reachability import explain
from resourced._repeats import CHANGES, Outgoing, Repeats, cannot_commit, is_of_standby, is_shut_down
from resourced._requests import Call, End, Request, awaited, in_loop
from resourced._tcp_link import TcpLink
from resourced.address import Endpoint, Keys, default_uri, load_keys, parse_places
from resourced.errors import ResourcedError
from resourced.stream import Stream

#: Maximum number of requests that are sent and not answered, others wait; and of messages that wait when notify() adds
#: one.
MAX_PENDING = 65536
#: Topics with requests that TOPIC-cancel ends.
_CANCELLABLE = ("resource.wait",)


def _cancel(connection: "weakref.ref[RpcConnection]", request: Request) -> None:
    if found := connection():
        found.cancel(request)


def _lose(connection: "weakref.ref[RpcConnection]") -> None:
    if found := connection():
        found._lose()


class RpcConnection:
    """A connection to the daemon at `uri`: `ipc://PATH`, `tcp://HOST:PORT` or `local://PATH`; the default is the one
    that resourcectl finds ($RESOURCED_URI). Creating it does not connect yet. `async with` connects and closes.

    `uri` may be several, separated by commas: those of the daemons of a cluster. All are asked at once, and the leader
    gets the requests, which wait for it up to their own timeout; connect() gives up after `failover_timeout`. When the
    daemon has lost leadership, the following are sent again to the next leader: questions whose answer was lost, and
    changes that the daemon has refused without making them (EHOSTUNREACH, EAGAIN), up to their timeout or for
    `failover_timeout`. A leader of a lower epoch than an earlier one is not followed. If two lead different clusters,
    or one that answers is in no cluster, requests and connect() fail with EINVAL.

    The addresses of a host in a tcp URI are tried in turn, each of several for an equal part of `connect_timeout`.

    `key_file` (else $RESOURCED_KEY) has the keys for a tcp address of a daemon that requires them; on other addresses
    the kernel identifies clients. Times are in seconds. A message that is longer than `max_message_size` ends the
    connection. `heartbeat_interval` may be math.inf for no heartbeats, and `linger` math.inf to wait for a daemon that
    does not read. By default the interval is 5 s and the timeout 15 s; with several endpoints 1 s and 3 s, to find the
    next leader soon.

    Raises ResourcedError for an invalid address or time, and for a key file that cannot be used. Not thread-safe: a
    connection belongs to the event loop that uses it first. One that is dropped without close() ends, with a
    ResourceWarning.
    """

    _closed = True

    def __init__(
        self,
        uri: str | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        connect_timeout: float = 5.0,
        call_timeout: float = 30.0,
        failover_timeout: float = 20.0,
        linger: float = 1.0,
        heartbeat_interval: float | None = None,
        heartbeat_timeout: float | None = None,
        retry_first: float = 0.02,
        retry_most: float = 1.0,
        max_message_size: int = 1 << 30,
    ) -> None:
        self._places = parse_places(uri or default_uri())
        interval, timeout = (1.0, 3.0) if self.has_places else (5.0, 15.0)
        heartbeat_interval = interval if heartbeat_interval is None else heartbeat_interval
        heartbeat_timeout = timeout if heartbeat_timeout is None else heartbeat_timeout
        times = {"connect_timeout": connect_timeout, "call_timeout": call_timeout, "heartbeat_interval": heartbeat_interval,
                 "heartbeat_timeout": heartbeat_timeout, "retry_first": retry_first, "retry_most": retry_most,
                 "failover_timeout": failover_timeout}
        for name, seconds in (times | {"linger": linger}).items():
            if not (seconds > 0 or (seconds == 0 and name == "linger")):  # nan is neither
                raise ResourcedError(errno.EINVAL, f"{name}: {seconds} is no such time", local=True)
        self._last_leader = LastLeader()
        self._search: LeaderSearch | None = None
        self._repeats = Repeats(failover_timeout)
        self._failover_timeout = failover_timeout
        file = os.fspath(key_file) if key_file else os.environ.get("RESOURCED_KEY", "")
        self._keys: Keys | None = load_keys(file) if file and any(one.scheme == "tcp" for one in self._places) else None
        if self._keys and zmq.curve_public(self._keys.secret_key) != self._keys.public_key:
            raise ResourcedError(errno.EINVAL, f"{file}: public-key and secret-key are not a pair", local=True)
        self._connect_timeout = connect_timeout
        self._call_timeout = call_timeout
        self._linger = linger
        self._retry_first, self._retry_most = retry_first, retry_most
        self._pause = retry_first
        self._link_options = LinkOptions(heartbeat_interval, heartbeat_timeout, max_message_size)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Task[None] | None = None
        self._context: Context | None = None
        self._link: Link | None = None
        self._connected = False
        self._process = os.getpid()
        self._since = -math.inf
        self._patience: Patience | None = None
        self._retry: asyncio.TimerHandle | None = None
        #: Timer during which questions alone are sent, because the daemon cannot make changes at present.
        self._hold: asyncio.TimerHandle | None = None
        self._hold_for = retry_first
        #: Timer until the link is dropped, because the daemon stops or does not lead. Nothing more is sent to it, and
        #: answers on their way are read.
        self._leaving: asyncio.TimerHandle | None = None
        #: Number of responses, and as of the last look for those that are still to be read before the link is dropped.
        self._received, self._received_before = 0, -1
        #: Requests and connect() calls that have failed, while the reason is looked for.
        self._failing: dict[asyncio.Task[None], tuple[list[Request], list[asyncio.Future[None]]]] = {}
        #: Calls of connect() that wait.
        self._connecting: set[asyncio.Future[None]] = set()
        self._outgoing = Outgoing()
        #: Sent requests by matchtag; None for those whose caller no longer waits.
        self._pending: dict[int, Request | None] = {}
        self._last_tag = 0
        self._numbers = itertools.count(1)
        #: Services with streams of this client: close() sends each a SERVICE.disconnect.
        self._services: set[str] = set()
        self._closed = False

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

    async def connect(self) -> None:
        """Waits until the daemon answers. Raises ResourcedError `cannot reach the daemon at URI: WHY`."""
        self._check_open("connect()")
        if self._connected:
            return
        future = asyncio.get_running_loop().create_future()
        self._connecting.add(future)
        try:
            if not self._is_trying and not (self._retry and self.has_places):
                self._start()
            async with asyncio.timeout(self._failover_timeout if self.has_places else None):
                with awaited(self):
                    await future
        except TimeoutError:
            raise await self._why_none() from None
        finally:
            self._connecting.discard(future)

    async def call(
        self,
        topic: str,
        payload: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        wait_for_daemon: bool = False,
    ) -> dict[str, Any]:
        """Sends a request, waits for its response, and returns the payload, an empty object if it has none. Raises
        ResourcedError: the daemon's, and local ones, ETIMEDOUT after `timeout` (else the connection's `call_timeout`;
        math.inf for none)."""
        request = Call(topic, payload, wait_for_daemon)
        await self._catch_up()
        request.timeout = seconds = self._call_timeout if timeout is None else timeout
        self.submit(request)
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                with awaited(self):
                    response = await request.future
        except TimeoutError:
            # Check again: the response may have been read in the turn of the loop in which the time was over.
            if not request.future.done() or request.future.cancelled():
                raise await self._late(request, seconds) from None
            response = request.future.result()
        finally:
            if not request.future.done() or request.future.cancelled():
                self.cancel(request)
        return response.payload()

    async def _catch_up(self) -> None:
        """Reads all received messages. A program whose loop did not run for a while may not know yet that the
        connection is lost: a change that is sent over it would count as lost, though it was never transmitted."""
        turns_until_the_end_is_seen = 3
        for _ in range(turns_until_the_end_is_seen if self.has_places and self._connected else 0):
            await asyncio.sleep(0)

    async def _late(self, request: Request, seconds: float) -> ResourcedError:
        if request.matchtag is None and request.refusal:
            return request.refusal
        if request.matchtag is None and self._search:
            return await self._why_none()
        if request.matchtag is None and (refusal := self._outgoing.refusal):
            text = (f"{request.topic}: not sent to {self.uri} within {seconds:g} s, as an earlier change was refused: "
                    f"{refusal.text}")
            return ResourcedError(refusal.errno, text, local=True)
        text = f"{request.topic}: no answer from {self.uri} within {seconds:g} s"
        return ResourcedError(errno.ETIMEDOUT, text, local=True)

    async def _why_none(self) -> ResourcedError:
        return await self._search.why(self._keys) if self._search else none_leads(self._places)

    def stream(self, topic: str, payload: Mapping[str, Any] | None = None, *, wait_for_daemon: bool = False) -> Stream:
        """Sends a streaming request. Iterate over the payloads of its responses, and close the stream, for instance
        with `async with`."""
        return Stream(self, topic, payload or {}, wait_for_daemon)

    def notify(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:
        """Sends a message that gets no response; it is dropped if there is no connection. Raises ENOBUFS if the daemon
        does not read, and too many messages wait."""
        self._check_open(topic)
        if self._connected and len(self._outgoing) >= MAX_PENDING:
            raise ResourcedError(errno.ENOBUFS, f"{topic}: too many messages wait to be sent to {self.uri}", local=True)
        self._notify(topic, payload)

    def _notify(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:
        if self._connected:
            self._outgoing.put(Request(topic, payload, flags=NORESPONSE))
            self._flush()

    async def close(self) -> None:
        """Tells the daemon to drop this client's streams, and closes. Requests without a response fail with ENOTCONN.
        If this call is cancelled, the connection closes nevertheless, and another close() waits for that."""
        self._check_loop("close()")
        if not self._ending:
            self._ending = asyncio.get_running_loop().create_task(self._wait_for_end(self._shut()))
        await asyncio.shield(self._ending)

    def _shut(self) -> Link | None:
        """Closes, and returns the link whose messages are on their way out."""
        waiting = self._outgoing.take(lambda one: not one.flags & NORESPONSE)
        if self._connected:
            for service in sorted(self._services):
                self._notify(f"{service}.disconnect")
        self._closed = True
        link, connected = self._link, self._connected
        requests = [*self._drop_link(self._linger if connected else 0), *waiting]
        self._outgoing = Outgoing()
        if self._search:
            self._search.close()
        if self._retry:
            self._retry.cancel()
        error = ResourcedError(errno.ENOTCONN, f"the connection to {self.uri} is closed", local=True)
        for task, failing in self._failing.items():
            task.cancel()
            self._fail(*failing, error)
        self._fail(requests, self._connecting, error)
        return link if connected else None

    async def _wait_for_end(self, link: Link | None) -> None:
        try:
            if link:
                await link.closed()
        finally:
            if self._context:
                context, self._context = self._context, None
                # This waits for messages on their way out, as long as they may linger.
                await asyncio.get_running_loop().run_in_executor(None, context.term)

    def __del__(self) -> None:
        if self._closed or os.getpid() != self._process:
            return
        self._closed, self._connected = True, False
        ends: list[Callable[[], None]] = [functools.partial(self._link.close, 0)] if self._link else []
        ends += [self._search.close] if self._search else []
        is_open = bool(ends)
        ends += [request.stop_timer for request in self._pending.values() if request]
        ends += [self._leaving.cancel] if self._leaving else []
        for end in ends:
            in_loop(self._loop, end)
        if is_open:  # last, as a warning may be an error
            warnings.warn(f"the connection to {self.uri} was dropped without close()", ResourceWarning, source=self)

    async def __aenter__(self) -> Self:
        try:
            await self.connect()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    # Requests

    def submit(self, request: Request) -> None:
        """Sends a request, now or when there is a connection."""
        self._check_open(request.topic)
        request.wait_for_daemon = request.wait_for_daemon or self.has_places
        # A request with wait_for_daemon does not start an attempt before its time.
        if not self._is_trying and not (request.wait_for_daemon and self._retry):
            try:
                self._start()
            except ResourcedError:
                if not request.wait_for_daemon:
                    raise
                self._retry_later()
        if request.flags & STREAMING:
            self._services.add(request.topic.partition(".")[0])
        request.number = next(self._numbers)
        self._outgoing.put(request)
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

    def drop(self, request: Request, what: str) -> None:
        """Cancels the request of an object that was dropped without close(), in any thread. A forked child leaves it to
        its parent."""
        if not self._closed and os.getpid() == self._process:
            if self._loop and not self._loop.is_closed():
                # Later, as a finalizer runs between any two steps of the work of the connection.
                with contextlib.suppress(RuntimeError):  # the loop has just been closed
                    self._loop.call_soon_threadsafe(_cancel, weakref.ref(self), request)
            else:
                self.cancel(request)
            warnings.warn(f"{what} was dropped without close()", ResourceWarning, source=request)

    async def end(self, request: Request) -> None:
        """Cancels a request, and waits until the daemon has ended it, at most for the linger time."""
        tag = request.matchtag
        # The value None means that the request was cancelled before.
        open_there = self._connected and tag in self._pending and self._pending[tag] in (request, None)
        self.cancel(request)
        if tag is not None and open_there and self._connected:
            end = self._pending[tag] = End(request.topic)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._linger):
                    with awaited(self):
                        await end.reached.wait()

    def _check_open(self, what: str) -> None:
        if self._closed:
            raise ResourcedError(errno.ENOTCONN, f"{what}: the connection is closed", local=True)
        self._check_loop(what)

    def _check_loop(self, what: str) -> None:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise ResourcedError(errno.ENOTCONN, f"{what}: the connection belongs to another event loop", local=True)

    def _flush(self) -> None:
        while self._connected and self._link and not self._leaving and (request := self._outgoing.first):
            tag = 0
            if not request.flags & NORESPONSE:
                if len(self._pending) >= MAX_PENDING:
                    return
                tag = self._last_tag % 0xFFFFFFFE + 1
                while tag in self._pending:
                    tag = tag % 0xFFFFFFFE + 1
            if not self._link.send(request_parts(request.topic, request.payload, tag, request.flags)):
                return
            self._outgoing.pop()
            if tag:
                request.matchtag = self._last_tag = tag
                self._pending[tag] = request
                self._repeats.sent(request)
                if math.isfinite(request.answer_timeout):
                    self._time_answer(request)

    def _time_answer(self, request: Request) -> None:
        weak: RpcConnection = weakref.proxy(self)

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
        weak: RpcConnection = weakref.proxy(self)
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
