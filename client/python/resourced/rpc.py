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
import errno
import functools
import itertools
import math
import os
import warnings
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import zmq

from resourced._link import Link, LinkOptions
from resourced._linked import MAX_PENDING, LinkedConnection
from resourced._message import NORESPONSE, STREAMING
from resourced._places import none_leads
from resourced._repeats import Outgoing
from resourced._requests import Call, End, Request, awaited, in_loop
from resourced.address import default_uri, load_keys, parse_places
from resourced.errors import ResourcedError, check_time
from resourced.stream import Stream


def _cancel(connection: "weakref.ref[RpcConnection]", request: Request) -> None:
    if found := connection():
        found.cancel(request)


class RpcConnection(LinkedConnection):
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
    next leader soon. A local endpoint has heartbeats only among several endpoints: the question whether the daemon leads.

    Raises ResourcedError for an invalid address or time, and for a key file that cannot be used. Not thread-safe: a
    connection belongs to the event loop that uses it first. One that is dropped without close() ends, with a
    ResourceWarning.
    """

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
        places = parse_places(uri or default_uri())
        interval, timeout = (1.0, 3.0) if len(places) > 1 else (5.0, 15.0)
        heartbeat_interval = interval if heartbeat_interval is None else heartbeat_interval
        heartbeat_timeout = timeout if heartbeat_timeout is None else heartbeat_timeout
        times = {"connect_timeout": connect_timeout, "call_timeout": call_timeout, "heartbeat_interval": heartbeat_interval,
                 "heartbeat_timeout": heartbeat_timeout, "retry_first": retry_first, "retry_most": retry_most,
                 "failover_timeout": failover_timeout}
        for name, seconds in times.items():
            check_time(name, seconds)
        check_time("linger", linger, least=0)
        file = os.fspath(key_file) if key_file else os.environ.get("RESOURCED_KEY", "")
        keys = load_keys(file) if file and any(one.scheme == "tcp" for one in places) else None
        if keys and zmq.curve_public(keys.secret_key) != keys.public_key:
            raise ResourcedError(errno.EINVAL, f"{file}: public-key and secret-key are not a pair", local=True)
        super().__init__(
            places,
            keys,
            LinkOptions(heartbeat_interval, heartbeat_timeout, max_message_size),
            connect_timeout=connect_timeout,
            failover_timeout=failover_timeout,
            pauses=(retry_first, retry_most),
        )
        self._call_timeout = call_timeout
        self._linger = linger
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Task[None] | None = None
        self._process = os.getpid()
        self._numbers = itertools.count(1)
        #: Services with streams of this client: close() sends each a SERVICE.disconnect.
        self._services: set[str] = set()
        #: The ledgers of the acquisitions of this connection (ledger.py).
        self._ledgers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._closed = False

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
        request.timeout = seconds = self._call_timeout if timeout is None else timeout
        check_time("timeout", seconds, least=-math.inf)
        await self._catch_up()
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
            self._flush_last()
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
