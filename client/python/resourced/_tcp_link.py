"""A link to a host that may have several addresses: libzmq itself would try the first one for ever."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace

from resourced._addresses import host_of, look_up
from resourced._link import Context, Failure, LinkOptions, Owner, ZmqLink
from resourced._message import Response
from resourced.address import Endpoint, Keys
from resourced.errors import ResourcedError


class TcpLink:
    """A link to a host that may have several addresses. They are tried in turn, each over a ZmqLink of its own, until
    one connects, or its daemon refuses this client. Each of several has an equal part of `attempt`, and the last one
    the rest, as the owner times the attempt."""

    def __init__(
        self,
        owner: Owner,
        context: Context,
        endpoint: Endpoint,
        keys: Keys | None,
        options: LinkOptions,
        attempt: float,
    ) -> None:
        self._owner, self._context, self._endpoint = owner, context, endpoint
        self._keys, self._options, self._attempt = keys, options, attempt
        self._link: ZmqLink | None = None
        self._failure = Failure.UNREACHABLE
        self._hosts: list[str] = []
        self._count = 1
        self._looking: asyncio.Task[None] | None = None
        if endpoint.has_numeric_host:
            self._link = ZmqLink(self, context, endpoint, keys, options)
        else:
            self._looking = asyncio.get_running_loop().create_task(self._look_up())

    async def _look_up(self) -> None:
        with contextlib.suppress(OSError):  # explain() reports it
            addresses = await look_up(self._endpoint)
            self._hosts = [host_of(address) for _, address in addresses]
            self._count = len(self._hosts)
        self._next()

    def _next(self) -> None:
        """Tries the next address, or fails."""
        with contextlib.suppress(ResourcedError):  # no descriptors left, for example
            if self._hosts:
                endpoint = replace(self._endpoint, host=self._hosts.pop(0))
                longest = self._attempt / self._count if self._hosts else math.inf
                self._link = ZmqLink(self, self._context, endpoint, self._keys, self._options, longest)
                return
        self._owner.link_failed(self._failure)

    def link_connected(self) -> None:
        self._owner.link_connected()

    def link_failed(self, failure: Failure) -> None:
        assert self._link
        self._link.close(0)
        if self._failure is Failure.UNREACHABLE or failure.is_final:
            self._failure = failure
        if failure.is_final:
            self._hosts.clear()
        self._next()

    def link_lost(self) -> None:
        self._owner.link_lost()

    def link_response(self, response: Response) -> None:
        self._owner.link_response(response)

    def link_room(self) -> None:
        self._owner.link_room()

    def send(self, parts: Sequence[bytes]) -> bool:
        assert self._link
        return self._link.send(parts)

    def close(self, linger: float) -> None:
        if self._looking:
            self._looking.cancel()
        if self._link:
            self._link.close(linger)

    async def closed(self) -> None:
        pass  # nothing to wait for, as in a ZmqLink
