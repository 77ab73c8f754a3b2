"""Finds the reason why a daemon cannot be reached."""

from __future__ import annotations

import asyncio
import errno
import os
import socket

from resourced._addresses import Address, host_of, look_up
from resourced._link import Failure
from resourced.address import Endpoint, Keys
from resourced.errors import ResourcedError

#: Maximum time to find out why an attempt failed, for the look-up of the host and for its addresses.
_TRY_FOR = 0.25


async def explain(failure: Failure, endpoint: Endpoint, keys: Keys | None) -> ResourcedError:
    """Returns the error `cannot reach the daemon at URI: WHY`, with an errno. As transports report little more than the
    failure, a plain socket tries the address, for a fraction of a second."""

    def unreachable(number: int, why: str) -> ResourcedError:
        return ResourcedError(number, f"cannot reach the daemon at {endpoint.uri}: {why}", local=True)

    match failure:
        case Failure.TIMED_OUT:
            return unreachable(errno.ETIMEDOUT, "no answer")
        case Failure.BAD_HANDSHAKE:
            return unreachable(errno.EPROTO, "the program that listens there does not speak the daemon's protocol")
        case Failure.OTHER_MECHANISM if not keys:
            return unreachable(errno.EACCES, "it requires a key")
        case Failure.OTHER_MECHANISM if keys:
            return unreachable(
                errno.EPROTO, f"it has no key, so it cannot prove to be the daemon that {keys.file} trusts"
            )
        case Failure.KEY_REFUSED:
            return unreachable(errno.EACCES, f"the daemon refuses the key in {keys.file if keys else 'no file'}")
        case Failure.NO_ROLE:
            return unreachable(errno.EPERM, "this user has no role there")
        case Failure.TOO_MANY:
            return unreachable(errno.EBUSY, "this user has too many connections there")
    try:
        await _try(endpoint)
    except socket.gaierror as error:
        return unreachable(errno.EHOSTUNREACH, f"{endpoint.host}: {error.strerror}")
    except OSError as error:
        number = error.errno or (errno.ETIMEDOUT if isinstance(error, TimeoutError) else errno.EIO)
        return unreachable(number, error.strerror or os.strerror(number))
    why = "the program that listens there ended the connection"
    if keys:
        why += f"; its key is not the server-key in {keys.file}, or it has no key"
    elif endpoint.scheme == "tcp":
        why += "; it may require a key"
    return unreachable(errno.ECONNREFUSED, why)


async def _try(endpoint: Endpoint) -> None:
    """Connects to one of the addresses. Raises the error of the only one, or one with those of all."""
    loop = asyncio.get_running_loop()
    addresses: list[Address] = [(socket.AF_UNIX, endpoint.path)]
    if endpoint.scheme == "tcp":
        async with asyncio.timeout(_TRY_FOR):
            addresses = await look_up(endpoint)
    failures: list[tuple[Address, int]] = []
    for family, address in addresses:
        try:
            async with asyncio.timeout(_TRY_FOR / len(addresses)):
                with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as connection:
                    await loop.sock_connect(connection, address)  # type: ignore[arg-type]
            return
        except TimeoutError:
            failures.append(((family, address), errno.ETIMEDOUT))
        except OSError as error:
            failures.append(((family, address), error.errno or errno.EIO))
    first = failures[0][1]
    if len(failures) == 1:
        raise OSError(first, os.strerror(first))
    raise OSError(first, "; ".join(f"{host_of(address)}: {os.strerror(number)}" for (_, address), number in failures))
