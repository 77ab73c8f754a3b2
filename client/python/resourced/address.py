"""Addresses of daemons: ipc://PATH and tcp://HOST:PORT for ZeroMQ, local://PATH for a Unix socket; and the file with
the CURVE keys for tcp."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass

from resourced._json import read_json
from resourced._quote import quoted
from resourced.errors import ResourcedError

#: Maximum length of a path in the address of a Unix socket.
MAX_SOCKET_PATH = 107
MAX_KEY_FILE = 4096

_HOST = re.compile(r"[a-z0-9._-]+", re.ASCII)
#: URIs are split only at commas before a scheme: a path may have commas.
_BETWEEN = re.compile(",(?=(?:ipc|tcp|local)://)")
_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}", re.ASCII)


@dataclass(frozen=True)
class Endpoint:
    scheme: str
    #: The path of ipc and local.
    path: str = ""
    #: The host of tcp; an IPv6 address is without brackets.
    host: str = ""
    port: int = 0

    @property
    def has_numeric_host(self) -> bool:
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def uri(self) -> str:
        if self.scheme != "tcp":
            return f"{self.scheme}://{self.path}"
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


def parse_endpoint(uri: str) -> Endpoint:
    """Reads a URI. Raises ResourcedError EINVAL, ENAMETOOLONG for a path that is too long."""

    def refused(reason: str, errnum: int = errno.EINVAL) -> ResourcedError:
        return ResourcedError(errnum, f"{quoted(uri)}: {reason}", local=True)

    scheme, separator, address = uri.partition("://")
    scheme = scheme.lower()
    if not separator:
        raise refused("expected ipc://PATH, tcp://HOST:PORT or local://PATH")
    if scheme not in ("ipc", "tcp", "local"):
        raise refused("the scheme is none of ipc, tcp and local")
    if scheme != "tcp":
        if not address:
            raise refused("no path")
        if any(ord(c) < 0x20 or c == "\x7f" for c in address):
            raise refused("control character in the path")
        if address.startswith("@"):
            raise refused("abstract sockets are not supported, as they have no access permissions")
        if address.endswith("/") or address.split("/")[-1] in (".", "..", "*"):
            raise refused("the path names no socket")
        parts = [part for part in address.split("/") if part not in ("", ".")]
        path = ("/" if address.startswith("/") else "") + "/".join(parts)
        size = len(path.encode(errors="surrogatepass"))
        if size > MAX_SOCKET_PATH:
            raise refused(f"the path has {size} bytes, a socket can have {MAX_SOCKET_PATH}", errno.ENAMETOOLONG)
        return Endpoint(scheme, path=path)
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        raise refused("no port")
    if host.startswith("[") and host.endswith("]"):
        try:
            host = str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            raise refused("not an IPv6 address in brackets") from None
    elif not _HOST.fullmatch(host.lower()):
        raise refused("no host" if not host else "invalid character in the host")
    if not re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) or not 0 < int(port) < 65536:
        raise refused("the port is not a number from 1 to 65535")
    return Endpoint("tcp", host=host.lower(), port=int(port))


def parse_places(uris: str) -> list[Endpoint]:
    """Returns the endpoints of one or several URIs, separated by commas."""
    return [parse_endpoint(uri) for uri in _BETWEEN.split(uris)]


def _directories() -> list[str]:
    """Returns the directories that may have a daemon's sockets, in the order of preference."""
    own = os.environ.get("RUNTIME_DIRECTORY", "")
    user = os.environ.get("XDG_RUNTIME_DIR", "")
    found = [own.partition(":")[0]] if own.startswith("/") else []
    return [*found, *([f"{user}/resourced"] if user.startswith("/") else []), "/run/resourced"]


def default_uri() -> str:
    """Returns the default URI, which `resourcectl` uses, too: $RESOURCED_URI, else the first socket that this user may
    connect to in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/resourced and /run/resourced, in each the bus before the Unix
    socket; else the first existing one, so that the error names it."""
    if uri := os.environ.get("RESOURCED_URI"):
        return uri
    tests: list[Callable[[str], bool]] = [lambda path: os.access(path, os.W_OK), os.path.exists]
    for fits in tests:
        for directory in _directories():
            if fits(f"{directory}/bus"):
                return f"ipc://{directory}/bus"
            if fits(f"{directory}/local"):
                return f"local://{directory}/local"
    return f"ipc://{_directories()[0]}/bus"


@dataclass(frozen=True)
class Keys:
    """A pair of CURVE keys in Z85, and the public key of the trusted daemon."""

    file: str
    public_key: bytes
    secret_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"Keys({self.file!r})"


def _is_secret(path: str, status: os.stat_result) -> bool:
    """Whether no other user can read or change a file. If it is root's, the group of this process may read it; in
    $CREDENTIALS_DIRECTORY (systemd's LoadCredential=) any group, because the mask of an access list appears there."""
    shared = status.st_mode & 0o077
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    is_credential = credentials is not None and path.startswith(credentials + "/")
    is_own_group = status.st_uid == 0 and os.geteuid() != 0 and status.st_gid == os.getegid()
    return shared == 0 or (shared == stat.S_IRGRP and (is_credential or is_own_group))


def load_keys(path: str) -> Keys:
    """Reads a file of `resourcectl keygen --server-key`. Raises ResourcedError that names it, EACCES if others may read
    or write it."""

    def refused(reason: str, errnum: int = errno.EINVAL) -> ResourcedError:
        return ResourcedError(errnum, f"{path}: {reason}", local=True)

    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise refused("not a regular file")
            if not _is_secret(path, status):
                mode = stat.S_IMODE(status.st_mode)
                raise refused(f"others may read or change it (mode {mode:04o}): chmod 600 {path}", errno.EACCES)
            if status.st_uid not in (os.geteuid(), 0):
                raise refused(f"belongs to uid {status.st_uid}, not to uid {os.geteuid()}", errno.EACCES)
            data = file.read(MAX_KEY_FILE + 1)
    except ResourcedError:
        raise
    except OSError as error:
        raise refused(os.strerror(error.errno or errno.EIO), error.errno or errno.EIO) from None
    if len(data) > MAX_KEY_FILE:
        raise refused("too large for a key file", errno.EFBIG)
    try:
        document = read_json(data.decode())
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise refused("not a key file (a JSON object)")
    keys = []
    for name in ("public-key", "secret-key", "server-key"):
        key = document.get(name)
        if name not in document:
            raise refused(f"{name}: missing")
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise refused(f"{name}: not a key (40 characters of Z85)")
        keys.append(key.encode())
    return Keys(path, *keys)
