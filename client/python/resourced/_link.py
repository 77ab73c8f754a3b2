"""A link is one attempt to reach the daemon, and the resulting connection, over ZeroMQ or a Unix socket.

A link is never used for a second connection, so that messages of two connections cannot be confused. It calls its owner
from the event loop, and never from inside its own functions.
"""

from __future__ import annotations

import asyncio
import enum
import errno
import itertools
import math
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import zmq

from resourced._message import MAX_PARTS, FrameDecoder, Response, encode_frame, read_response
from resourced.address import Endpoint, Keys
from resourced.errors import ResourcedError


class Failure(enum.Enum):
    """Why an attempt failed, as far as the transport reports it."""

    UNREACHABLE = enum.auto()
    TIMED_OUT = enum.auto()
    #: The other end closed the connection during the handshake. A CURVE server does that if the client does not have
    #: its public key.
    ENDED = enum.auto()
    BAD_HANDSHAKE = enum.auto()
    OTHER_MECHANISM = enum.auto()
    KEY_REFUSED = enum.auto()
    NO_ROLE = enum.auto()
    TOO_MANY = enum.auto()
    #: The daemon is a standby of a cluster.
    NOT_LEADING = enum.auto()

    @property
    def is_final(self) -> bool:
        """Whether the next attempt would fail in the same way unless keys or roles are changed."""
        return self in (Failure.OTHER_MECHANISM, Failure.KEY_REFUSED, Failure.NO_ROLE)


class Owner(Protocol):
    def link_connected(self) -> None: ...
    def link_failed(self, failure: Failure) -> None: ...
    def link_lost(self) -> None: ...
    def link_response(self, response: Response) -> None: ...
    def link_room(self) -> None:
        """Called when there is room again after a send() that returned False."""


@dataclass(frozen=True)
class LinkOptions:
    heartbeat_interval: float
    heartbeat_timeout: float
    max_message_size: int


class Link(Protocol):
    def send(self, parts: Sequence[bytes]) -> bool:
        """Sends a message. Returns False if there is no room now."""

    def close(self, linger: float) -> None:
        """Closes the link. Messages that were sent have this time to leave. The owner is not called any more."""

    async def closed(self) -> None:
        """Waits until all messages have left, or their time is over."""


#: Reconnection interval: ZeroMQ reports a failed attempt only by scheduling the next one, which is an hour later here.
_NEVER = 3600 * 1000
_MONITORED = (
    zmq.EVENT_CONNECT_RETRIED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
_EVENT = struct.Struct("=HI")
#: ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH, which older versions of pyzmq do not define.
_MECHANISM_MISMATCH = 0x11000002
#: Number of messages and events that are handled before other work of the loop.
_MOST_STEPS = 100
#: Maximum number of bytes that may wait for a daemon that does not read its Unix socket.
_FULL_AT = 1 << 20
_numbers = itertools.count(1)


class _Socket(zmq.Socket[bytes]):
    def __del__(self) -> None:
        """Leaves the order in which sockets are closed to their context."""


class Context(zmq.Context[_Socket]):
    """A context that can be collected as garbage together with its sockets: the collector finalizes objects in any order,
    and the end of a context waits for that of its sockets."""

    _socket_class = _Socket
    #: The sockets of links that are not closed, each with its monitor.
    pairs: set[tuple[_Socket, _Socket]] = set()
    _process = 0

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()
        self.pairs = set()

    def close_pair(self, pair: tuple[_Socket, _Socket], linger: int) -> None:
        self.pairs.discard(pair)
        socket, monitor = pair
        # Stop the monitor while its other end exists: else the next event would block the thread of libzmq for ever.
        socket.monitor(None, 0)
        monitor.close(0)
        socket.close(linger)

    def __del__(self) -> None:
        if not self.closed and os.getpid() == self._process:
            while self.pairs:
                self.close_pair(next(iter(self.pairs)), 0)
            self.term()


class ZmqLink:
    """A link to an ipc endpoint, or a tcp one with a numeric host. It fails after `longest` seconds.

    The descriptor of a ZeroMQ socket is edge-triggered: the events of the socket are checked again after each use.
    """

    def __init__(
        self,
        owner: Owner,
        context: Context,
        endpoint: Endpoint,
        keys: Keys | None,
        options: LinkOptions,
        longest: float = math.inf,
    ) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._connected = self._lost = self._wants_room = self._over = False
        self._work_soon: asyncio.Handle | None = None
        try:
            self._socket = context.socket(zmq.DEALER)
        except zmq.ZMQError as error:
            raise _cannot_connect(endpoint, error) from None
        try:
            self._monitor = context.socket(zmq.PAIR)
        except zmq.ZMQError as error:
            self._socket.close(0)
            raise _cannot_connect(endpoint, error) from None
        self._pair = (self._socket, self._monitor)
        context.pairs.add(self._pair)
        try:
            for option, value in (
                (zmq.LINGER, 0),
                # libzmq would reach an IPv4 address by a socket of IPv6, which a system may lack.
                (zmq.IPV6, int(":" in endpoint.host)),
                (zmq.RECONNECT_IVL, _NEVER),
                (zmq.CONNECT_TIMEOUT, 0 if math.isinf(longest) else _ms(longest)),
                (zmq.HANDSHAKE_IVL, 0 if math.isinf(longest) else _ms(longest)),
                (zmq.HEARTBEAT_IVL, 0 if math.isinf(options.heartbeat_interval) else _ms(options.heartbeat_interval)),
                (zmq.HEARTBEAT_TIMEOUT, _ms(options.heartbeat_timeout)),
                (zmq.HEARTBEAT_TTL, _ms(options.heartbeat_timeout)),
                (zmq.MAXMSGSIZE, options.max_message_size),
            ):
                self._socket.setsockopt(option, value)
            if keys:
                self._socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server_key)
                self._socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public_key)
                self._socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret_key)
            address = f"inproc://monitor-{next(_numbers)}"
            self._socket.monitor(address, _MONITORED)
            self._monitor.connect(address)
            self._socket.connect(endpoint.uri)
        except zmq.ZMQError as error:
            self._close_sockets(0)
            raise _cannot_connect(endpoint, error) from None
        self._descriptors = [int(self._socket.getsockopt(zmq.FD)), int(self._monitor.getsockopt(zmq.FD))]
        for descriptor in self._descriptors:
            self._loop.add_reader(descriptor, self._work)
        self._again()

    def send(self, parts: Sequence[bytes]) -> bool:
        try:
            # Only the first part can fail for lack of room.
            self._socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.Again:
            self._wants_room = True
            return False
        finally:
            self._again()
        return True

    def close(self, linger: float) -> None:
        if self._over:
            return
        self._over = True
        for descriptor in self._descriptors:
            self._loop.remove_reader(descriptor)
        if self._work_soon:
            self._work_soon.cancel()
        self._close_sockets(linger)

    async def closed(self) -> None:
        pass  # the end of the context waits for all sockets

    def _close_sockets(self, linger: float) -> None:
        self._context.close_pair(self._pair, -1 if math.isinf(linger) else _ms(linger))

    def _again(self) -> None:
        if not self._work_soon and not self._over:
            self._work_soon = self._loop.call_soon(self._work)

    def _work(self) -> None:
        if self._work_soon:
            self._work_soon.cancel()
            self._work_soon = None
        for _ in range(_MOST_STEPS):
            if self._over:
                return
            if not self._receive() and not self._event():
                break
        if self._over:
            return
        events = int(self._socket.getsockopt(zmq.EVENTS))
        if self._wants_room and events & zmq.POLLOUT:
            self._wants_room = False
            self._owner.link_room()
        if not self._over and (self._lost or (events | int(self._monitor.getsockopt(zmq.EVENTS))) & zmq.POLLIN):
            self._again()

    def _receive(self) -> bool:
        parts: list[bytes] = []
        try:
            parts.append(self._socket.recv(zmq.NOBLOCK))
        except zmq.Again:
            return False
        while self._socket.getsockopt(zmq.RCVMORE):
            part = self._socket.recv(zmq.NOBLOCK)
            if len(parts) <= MAX_PARTS:
                parts.append(part)
        if response := read_response(parts):
            self._owner.link_response(response)
        return True

    def _event(self) -> bool:
        """Handles an event of the monitor, once all messages from before it are read."""
        if self._lost:
            self._owner.link_lost()
            return True
        try:
            event, value = _EVENT.unpack(self._monitor.recv_multipart(zmq.NOBLOCK)[0])
        except zmq.Again:
            return False
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._connected = True
            self._owner.link_connected()
        elif self._connected:
            self._lost = True
        else:
            self._owner.link_failed(_failure_of(event, value))
        return True


def _cannot_connect(endpoint: Endpoint, error: OSError | zmq.ZMQError) -> ResourcedError:
    number = error.errno or errno.EIO
    return ResourcedError(number, f"cannot connect to {endpoint.uri}: {os.strerror(number)}", local=True)


def _failure_of(event: int, value: int) -> Failure:
    if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
        return Failure.KEY_REFUSED
    if event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
        return Failure.OTHER_MECHANISM if value == _MECHANISM_MISMATCH else Failure.BAD_HANDSHAKE
    return Failure.ENDED if event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL else Failure.UNREACHABLE


def _ms(seconds: float) -> int:
    """Returns milliseconds: at least 1, as 0 would mean none; at most an hour."""
    return max(int(min(seconds * 1000, _NEVER)), 1 if seconds else 0)


class LocalLink(asyncio.Protocol):
    def __init__(self, owner: Owner, endpoint: Endpoint, options: LinkOptions) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._path = endpoint.path
        self._decoder = FrameDecoder(options.max_message_size)
        self._transport: asyncio.WriteTransport | None = None
        self._connected = self._wants_room = self._over = False
        self._gone = self._loop.create_future()
        try:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            raise _cannot_connect(endpoint, error) from None
        self._connecting = self._loop.create_task(self._connect(connection))
        # Close the socket also if the task is cancelled before its first step.
        self._connecting.add_done_callback(lambda task: connection.close() if task.cancelled() else None)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            while True:
                try:
                    connection.connect(self._path)
                    break
                except BlockingIOError:
                    # The backlog of the daemon is full, and no descriptor signals when it has room.
                    await asyncio.sleep(0.01)
            await self._loop.create_unix_connection(lambda: self, sock=connection)
        except OSError:
            connection.close()
            self._end(Failure.UNREACHABLE)
        except BaseException:
            connection.close()
            raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop has transports that are of no class of asyncio.
        self._transport = cast(asyncio.WriteTransport, transport)
        self._transport.set_write_buffer_limits(high=_FULL_AT)

    def data_received(self, data: bytes) -> None:
        if not self._connected and not self._over:
            # The first byte is the welcome: 0, or the errno of a refusal.
            if data[0]:
                refusals = {errno.EPERM: Failure.NO_ROLE, errno.EBUSY: Failure.TOO_MANY}
                self._end(refusals.get(data[0], Failure.BAD_HANDSHAKE))
                return
            data = data[1:]
            self._connected = True
            self._owner.link_connected()
        try:
            for parts in self._decoder.feed(data):
                if self._over:
                    return
                if response := read_response(parts):
                    self._owner.link_response(response)
        except ValueError:
            self._end(Failure.BAD_HANDSHAKE)  # the bytes that follow cannot be split into frames

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
        self._end(Failure.ENDED)

    def resume_writing(self) -> None:
        if self._wants_room and not self._over:
            self._wants_room = False
            self._owner.link_room()

    def send(self, parts: Sequence[bytes]) -> bool:
        assert self._transport
        if self._transport.get_write_buffer_size() >= _FULL_AT:
            self._wants_room = True
            return False
        self.send_last(parts)
        return True

    def send_last(self, parts: Sequence[bytes]) -> None:
        """Sends a message also if there is no room."""
        assert self._transport
        self._transport.write(encode_frame(parts))

    def close(self, linger: float) -> None:
        self._over = True
        self._connecting.cancel()
        if not self._transport:
            if not self._gone.done():
                self._gone.set_result(None)
        elif linger > 0:
            self._transport.close()  # after what is still to be written
            if math.isfinite(linger):
                self._loop.call_later(linger, self._transport.abort)
        else:
            self._transport.abort()

    async def closed(self) -> None:
        await self._gone

    def _end(self, failure: Failure) -> None:
        if self._over:
            return
        self._over = True
        if self._transport:
            self._transport.abort()
        if self._connected:
            self._owner.link_lost()
        else:
            self._owner.link_failed(failure)
