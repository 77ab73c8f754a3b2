"""A connection to the daemon for asyncio: remote procedure calls as of RFC 6, streams included.

The connection is made when something is to be sent. If the attempt fails, the requests that wait to be sent fail, except
those with `wait_for_daemon`, for which new attempts are made until they can be sent, or until the daemon refuses this
client's key or user. When an established connection is lost, every request that was sent fails with a local ECONNRESET;
the next one makes a new connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import errno
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import zmq

from resourced._link import Failure, Link, LinkOptions, LocalLink, ZmqLink, explain
from resourced._message import NORESPONSE, STREAMING, Response, request_parts
from resourced._requests import Call, End, Request
from resourced.address import Endpoint, Keys, default_uri, load_keys, parse_places
from resourced.errors import ResourcedError
from resourced.stream import Stream

#: The most requests that are sent and not answered, others wait; and the most messages that wait when notify() adds one.
MAX_PENDING = 65536
#: The parts of `connect_timeout`. Each passes with a turn of the loop, so that a program that was busy meanwhile still
#: reads the answer.
_PARTS_OF_TIMEOUT = 10
#: Topics whose requests TOPIC-cancel ends.
_CANCELLABLE = ("resource.wait",)


class _LeaderQuestion(Request):
    """The first request to one of several places: the others go to the daemon that leads. One that does not know the
    question is no member of a cluster."""

    def __init__(self, take: Callable[[int | None], None]) -> None:
        super().__init__("resource.leader", None)
        #: Takes the epoch, 0 for a daemon that tells none, and None for one that does not lead.
        self._take = take

    def receive(self, response: Response) -> None:
        epoch: Any = None
        with contextlib.suppress(ResourcedError):
            epoch = response.payload().get("epoch", 0)
        self._take(epoch if isinstance(epoch, int) else None)

    def fail(self, error: ResourcedError) -> None:
        if not error.local:
            self._take(None if error.errno in (errno.EHOSTUNREACH, errno.EBUSY) else 0)


class RpcConnection:
    """A connection to the daemon at `uri`: `ipc://PATH`, `tcp://HOST:PORT` or `local://PATH`; where none is given, the one
    that resourcectl finds ($RESOURCED_URI). It does not connect yet. `async with` connects and closes.

    `uri` may be several, separated by commas: those of the daemons of a cluster, of which only the leader listens. They
    are tried in turn, each for `failover_attempt`; connect() gives up after `failover_timeout`, and every request waits
    for the daemon, up to its own timeout.

    `key_file` (else $RESOURCED_KEY) has the keys for a tcp address of a daemon that asks for them; the kernel identifies
    the clients of others. Times are in seconds. A message that is longer than `max_message_size` ends the connection.
    `heartbeat_interval` may be math.inf for no heartbeats, and `linger` math.inf to wait for a daemon that does not read.

    Raises ResourcedError for an invalid address or time, and for a key file that cannot be used. Not thread-safe: it
    belongs to the event loop in which it is used first.
    """

    def __init__(
        self,
        uri: str | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        connect_timeout: float = 5.0,
        call_timeout: float = 30.0,
        failover_timeout: float = 20.0,
        failover_attempt: float = 1.0,
        linger: float = 1.0,
        heartbeat_interval: float = 5.0,
        heartbeat_timeout: float = 15.0,
        retry_first: float = 0.02,
        retry_most: float = 1.0,
        max_message_size: int = 1 << 30,
    ) -> None:
        times = {"connect_timeout": connect_timeout, "call_timeout": call_timeout, "heartbeat_interval": heartbeat_interval,
                 "heartbeat_timeout": heartbeat_timeout, "retry_first": retry_first, "retry_most": retry_most,
                 "failover_timeout": failover_timeout, "failover_attempt": failover_attempt}
        for name, seconds in (times | {"linger": linger}).items():
            if not (seconds > 0 or (seconds == 0 and name == "linger")):  # nan is neither
                raise ResourcedError(errno.EINVAL, f"{name}: {seconds} is no such time", local=True)
        self._places = parse_places(uri or default_uri())
        self._place = 0
        #: Places that were tried since the last connection or the last of them, and a failure among these that is final.
        self._tried = 0
        #: The highest one of the leaders so far.
        self._epoch = 0
        self._refusal: tuple[Failure, Endpoint] | None = None
        self._failover_timeout = failover_timeout
        file = os.fspath(key_file) if key_file else os.environ.get("RESOURCED_KEY", "")
        self._keys: Keys | None = load_keys(file) if file and any(one.scheme == "tcp" for one in self._places) else None
        if self._keys and zmq.curve_public(self._keys.secret_key) != self._keys.public_key:
            raise ResourcedError(errno.EINVAL, f"{file}: public-key and secret-key are not a pair", local=True)
        self._connect_timeout = min(connect_timeout, failover_attempt) if len(self._places) > 1 else connect_timeout
        self._call_timeout = call_timeout
        self._linger = linger
        self._retry_first, self._retry_most = retry_first, retry_most
        self._pause = retry_first
        self._link_options = LinkOptions(heartbeat_interval, heartbeat_timeout, max_message_size)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Task[None] | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._link: Link | None = None
        self._connected = self._closed = False
        self._since = -math.inf
        self._timeout: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        #: Requests and connect() calls that have failed, while the reason is looked for.
        self._failing: dict[asyncio.Task[None], tuple[list[Request], list[asyncio.Future[None]]]] = {}
        #: connect() of callers.
        self._connecting: set[asyncio.Future[None]] = set()
        #: Requests and notices that are not sent yet.
        self._outgoing: deque[Request] = deque()
        #: Sent requests by matchtag; None for those that nobody waits for any more.
        self._pending: dict[int, Request | None] = {}
        self._last_tag = 0
        #: Services with streams of this client: the end sends each a SERVICE.disconnect.
        self._services: set[str] = set()

    @property
    def uri(self) -> str:
        return ",".join(place.uri for place in self._places)

    @property
    def connected(self) -> bool:
        return self._connected

    async def connect(self) -> None:
        """Waits until the daemon answers. Raises ResourcedError `cannot reach the daemon at URI: WHY`."""
        self._check_open("connect()")
        if self._connected:
            return
        future = asyncio.get_running_loop().create_future()
        self._connecting.add(future)
        try:
            if not self._link and not (self._retry and self._has_places):
                self._start_link()
            async with asyncio.timeout(self._failover_timeout if self._has_places else None):
                await future
        except TimeoutError:
            text = f"cannot reach the daemon at {self.uri}: none of them leads the cluster"
            raise ResourcedError(errno.EHOSTUNREACH, text, local=True) from None
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
        self.submit(request)
        seconds = self._call_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                response = await request.future
        except TimeoutError:
            # The response may have been read in the turn of the loop in which the time was over.
            if not request.future.done() or request.future.cancelled():
                text = f"{topic}: no answer from {self.uri} within {seconds:g} s"
                raise ResourcedError(errno.ETIMEDOUT, text, local=True) from None
            response = request.future.result()
        finally:
            if not request.future.done() or request.future.cancelled():
                self.cancel(request)
        return response.payload()

    def stream(self, topic: str, payload: Mapping[str, Any] | None = None, *, wait_for_daemon: bool = False) -> Stream:
        """Sends a streaming request. Iterate over the payloads of its responses, and close it, as with `async with`."""
        return Stream(self, topic, payload or {}, wait_for_daemon)

    def notify(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:
        """Sends a message that gets no response; dropped if there is no connection. Raises ENOBUFS if the daemon does not
        read, and too many wait."""
        self._check_open(topic)
        if self._connected and len(self._outgoing) >= MAX_PENDING:
            raise ResourcedError(errno.ENOBUFS, f"{topic}: too many messages wait to be sent to {self.uri}", local=True)
        self._notify(topic, payload)

    def _notify(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:
        if self._connected:
            self._outgoing.append(Request(topic, payload, flags=NORESPONSE))
            self._flush()

    async def close(self) -> None:
        """Tells the daemon to drop this client's streams, and closes. Requests without a response fail with ENOTCONN. If
        this is cancelled, the connection closes nevertheless, and another close() waits for that."""
        self._check_loop("close()")
        if not self._ending:
            self._ending = asyncio.get_running_loop().create_task(self._wait_for_end(self._shut()))
        await asyncio.shield(self._ending)

    def _shut(self) -> Link | None:
        """Closes, and returns the link whose messages are on their way out."""
        if self._connected:
            for service in sorted(self._services):
                self._notify(f"{service}.disconnect")
        self._closed = True
        link, connected = self._link, self._connected
        requests = [*self._drop_link(self._linger if connected else 0), *self._outgoing]
        self._outgoing.clear()
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
                # Waits for messages on their way out, as long as they may linger.
                await asyncio.get_running_loop().run_in_executor(None, context.term)

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
        request.wait_for_daemon = request.wait_for_daemon or self._has_places
        # A request that waits for the daemon does not hasten the next attempt.
        if not self._link and not (request.wait_for_daemon and self._retry):
            try:
                self._start_link()
            except ResourcedError:
                if not request.wait_for_daemon:
                    raise
                self._retry_later()
        if request.flags & STREAMING:
            self._services.add(request.topic.partition(".")[0])
        self._outgoing.append(request)
        self._flush()

    def cancel(self, request: Request) -> None:
        """Neither function of the request is called any more; the daemon is asked to end it if it can be ended."""
        if request.matchtag is None:
            if request in self._outgoing:
                self._outgoing.remove(request)
        elif self._pending.get(request.matchtag) is request:
            # The matchtag stays in use until the last response.
            self._pending[request.matchtag] = None
            if request.flags & STREAMING or request.topic in _CANCELLABLE:
                self._notify(f"{request.topic}-cancel", {"matchtag": request.matchtag})

    async def end(self, request: Request) -> None:
        """Cancels a request, and waits until the daemon has ended it, at most for the linger time."""
        tag = request.matchtag
        # None: it was cancelled before.
        open_there = self._connected and tag in self._pending and self._pending[tag] in (request, None)
        self.cancel(request)
        if tag is not None and open_there and self._connected:
            end = self._pending[tag] = End(request.topic)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._linger):
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
        while self._connected and self._link and self._outgoing:
            request = self._outgoing[0]
            tag = 0
            if not request.flags & NORESPONSE:
                if len(self._pending) >= MAX_PENDING:
                    return
                tag = self._last_tag % 0xFFFFFFFE + 1
                while tag in self._pending:
                    tag = tag % 0xFFFFFFFE + 1
            if not self._link.send(request_parts(request.topic, request.payload, tag, request.flags)):
                return
            if tag:
                request.matchtag = self._last_tag = tag
                self._pending[tag] = request
            self._outgoing.popleft()

    @staticmethod
    def _fail(requests: Iterable[Request], futures: Iterable[asyncio.Future[None]], error: ResourcedError) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(copy.copy(error))  # each task adds its own traceback
        for request in requests:
            if not request.flags & NORESPONSE:
                request.fail(copy.copy(error))

    # The link

    def _start_link(self) -> None:
        endpoint = self._places[self._place]
        if endpoint.scheme == "local":
            self._link = LocalLink(self, endpoint, self._link_options)
        else:
            self._context = self._context or zmq.Context()
            self._link = ZmqLink(self, self._context, endpoint, self._keys, self._link_options)
        # Not before: without descriptors there is no link, and the next attempt has to come.
        if self._retry:
            self._retry.cancel()
            self._retry = None
        self._pass_time(_PARTS_OF_TIMEOUT)

    def _pass_time(self, parts: int) -> None:
        if parts:
            part = self._connect_timeout / _PARTS_OF_TIMEOUT
            self._timeout = asyncio.get_running_loop().call_later(part, self._pass_time, parts - 1)
        else:
            self.link_failed(Failure.TIMED_OUT)

    def _drop_link(self, linger: float = 0) -> list[Request]:
        """Returns the requests that were sent."""
        if self._timeout:
            self._timeout.cancel()
            self._timeout = None
        if self._link:
            self._link.close(linger)
        self._link = None
        self._connected = False
        sent = [request for request in self._pending.values() if request]
        self._pending.clear()
        return sent

    def _retry_later(self) -> None:
        if self._closed or self._retry:
            return
        self._retry = asyncio.get_running_loop().call_later(self._pause, self._try_again)
        self._pause = min(2 * self._pause, self._retry_most)

    def _try_again(self) -> None:
        self._retry = None
        if self._link or not (self._outgoing or self._connecting):
            return
        try:
            self._start_link()
        except ResourcedError:
            self._retry_later()  # no descriptors left, for example

    def _keep_waiting(self) -> list[Request]:
        """Keeps the requests that wait for the daemon, and returns the others."""
        others = [request for request in self._outgoing if not request.wait_for_daemon]
        self._outgoing = deque(request for request in self._outgoing if request.wait_for_daemon)
        return others

    def link_connected(self) -> None:
        if not self._has_places:
            return self._begin()
        question = _LeaderQuestion(self._take_leader)
        question.matchtag = self._last_tag = 1
        self._pending[1] = question
        assert self._link
        self._link.send(request_parts(question.topic, question.payload, 1, 0))

    def _take_leader(self, epoch: int | None) -> None:
        if epoch is not None and epoch >= self._epoch:
            self._epoch = epoch
            self._begin()
        else:
            self.link_failed(Failure.NOT_LEADING)

    def _begin(self) -> None:
        if self._timeout:
            self._timeout.cancel()
            self._timeout = None
        self._connected = True
        self._tried, self._refusal = 0, None
        self._since = asyncio.get_running_loop().time()
        for future in self._connecting:
            if not future.done():
                future.set_result(None)
        self._flush()

    def link_failed(self, failure: Failure) -> None:
        self._drop_link()
        endpoint = self._places[self._place]
        if failure.is_final:
            self._refusal = failure, endpoint
        if self._has_places:
            self._place = (self._place + 1) % len(self._places)
            self._tried = (self._tried + 1) % len(self._places)
            if self._tried:
                self._try_again()
                return
            if self._refusal:
                (failure, endpoint), self._refusal = self._refusal, None
        requests = self._keep_waiting()
        if failure.is_final:
            requests += self._outgoing
            self._outgoing.clear()
        elif self._outgoing or (self._has_places and self._connecting):
            self._retry_later()
            if self._has_places:
                return
        futures = [future for future in self._connecting if not future.done()]
        self._connecting.clear()
        if requests or futures:
            task = asyncio.get_running_loop().create_task(self._explain(failure, endpoint, requests, futures))
            self._failing[task] = (requests, futures)
            task.add_done_callback(lambda done: self._failing.pop(done))

    async def _explain(
        self, failure: Failure, endpoint: Endpoint, requests: list[Request], futures: list[asyncio.Future[None]]
    ) -> None:
        self._fail(requests, futures, await explain(failure, endpoint, self._keys))

    @property
    def _has_places(self) -> bool:
        return len(self._places) > 1

    def link_lost(self) -> None:
        if not self._connected:  # before it has said whether it leads
            return self.link_failed(Failure.ENDED)
        requests = [*self._drop_link(), *self._keep_waiting()]
        # A daemon that ends each connection at once is asked at growing intervals.
        if asyncio.get_running_loop().time() - self._since >= self._retry_most:
            self._pause = self._retry_first
        self._retry_later()
        error = ResourcedError(errno.ECONNRESET, f"lost the connection to the daemon at {self.uri}", local=True)
        self._fail(requests, (), error)

    def link_response(self, response: Response) -> None:
        if response.matchtag not in self._pending:
            return
        request = self._pending[response.matchtag]
        if not response.more:
            del self._pending[response.matchtag]
            self._flush()
        if request:
            request.fail(response.error()) if response.errnum else request.receive(response)

    def link_room(self) -> None:
        self._flush()
