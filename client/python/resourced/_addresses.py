"""Look-ups of the addresses of a host."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import threading

from resourced.address import Endpoint

#: A family of sockets, and an address of it.
Address = tuple[int, object]


def host_of(address: object) -> str:
    """Returns the numeric address, with its scope for an address of IPv6 that has one."""
    return socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]  # type: ignore[arg-type]


async def look_up(endpoint: Endpoint) -> list[Address]:
    """Returns the addresses of a host. It uses a thread that no exit waits for, because a name server may take long to
    answer."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Address]] = loop.create_future()

    def deliver(addresses: list[Address], error: OSError | None) -> None:
        if not found.done():
            found.set_exception(error) if error else found.set_result(addresses)

    def ask() -> None:
        addresses: list[Address] = []
        failure: OSError | None = None
        try:
            for family, _, _, _, address in socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM):
                if (family, address) not in addresses:  # a host may be in several lines of /etc/hosts
                    addresses.append((family, address))
        except OSError as error:
            failure = error
        except UnicodeError:  # a part of the name is empty or too long
            failure = socket.gaierror(socket.EAI_NONAME, "not a name of a host")
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(deliver, addresses, failure)

    try:
        threading.Thread(target=ask, daemon=True).start()
    except RuntimeError:  # no more threads
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    return await found
