"""The local connector of Flux, written from its specification, with only Python's standard library.

Bytes on a Unix stream socket: one byte of welcome, then frames of a magic number, a length and the parts of a message
(RFC 3). Shares no code with the daemon, so that a mistake in one does not hide in the other.
"""

import json
import socket
import struct

MAGIC = bytes.fromhex("1200eeff")  # 0xffee0012 as a little-endian machine writes it
REQUEST, RESPONSE = 1, 2
TOPIC, PAYLOAD, NORESPONSE, ROUTE, STREAMING = 0x01, 0x02, 0x04, 0x08, 0x40
ANY = 0xFFFFFFFF
OWNER, USER, LOCAL, ADMIN = 1, 2, 4, 8
PATIENCE = 30  # seconds to wait for an answer


def proto(kind, flags, aux, matchtag, userid=ANY, rolemask=0):
    return struct.pack(">BBBBIIII", 0x8E, 1, kind, flags, userid, rolemask, aux, matchtag)


def encode(parts):
    """A frame with these parts."""
    body = b""
    for part in parts:
        size = struct.pack("B", len(part)) if len(part) < 255 else b"\xff" + struct.pack(">I", len(part))
        body += size + part
    return MAGIC + struct.pack(">I", len(body)) + body


def split(body):
    """The parts in the body of a frame."""
    parts = []
    while body:
        size, start = body[0], 1
        if size == 255:
            (size,) = struct.unpack(">I", body[1:5])
            start = 5
        if len(body) < start + size:
            raise ValueError("a part that is longer than its frame")
        parts.append(body[start : start + size])
        body = body[start + size :]
    return parts


class Response:
    """A parsed message. Raises ValueError if it is not a response of RFC 3 and RFC 6."""

    def __init__(self, parts):
        self.proto = parts[-1]
        if len(self.proto) != 20:
            raise ValueError(f"PROTO of {len(self.proto)} bytes")
        magic, version, kind, self.flags, self.userid, self.rolemask, self.errnum, self.matchtag = struct.unpack(
            ">BBBBIIII", self.proto
        )
        if (magic, version, kind) != (0x8E, 1, RESPONSE):
            raise ValueError(f"not a response: {self.proto.hex()}")
        if self.flags & (ROUTE | TOPIC) != ROUTE | TOPIC or self.flags & NORESPONSE:
            raise ValueError(f"flags {self.flags:#x}")
        rest = parts[:-1]
        self.routes = rest[: rest.index(b"")]
        rest = rest[len(self.routes) + 1 :]
        if len(rest) != (2 if self.flags & PAYLOAD else 1):
            raise ValueError(f"{len(rest)} parts with flags {self.flags:#x}")
        self.topic = rest[0].decode()
        self.payload = rest[1] if self.flags & PAYLOAD else None

    @property
    def text(self):
        """The text of an error, without its NUL."""
        if self.payload is None:
            return ""
        if self.payload[-1:] != b"\0":
            raise ValueError("an error text without NUL")
        return self.payload[:-1].decode()

    @property
    def object(self):
        if self.errnum:
            raise ValueError(f"{self.topic}: error {self.errnum}: {self.text}")
        if self.payload is None:
            return None
        if self.payload[-1:] != b"\0":
            raise ValueError("a payload without NUL")
        value = json.loads(self.payload[:-1])
        if not isinstance(value, dict):
            raise ValueError("a payload that is not an object")
        return value


class Connector:
    """A connection. `welcome` is the first byte from the daemon: 0 or an errno.

    Every response must carry the credentials of its request, as Flux drops any other without a word: `credentials`,
    the userid and rolemask that the daemon gives this connection, or those that an owner's request claims.
    """

    def __init__(self, path, credentials):
        self.credentials = credentials
        self.claims = {}
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.welcome = self._take(1)[0]
        self.matchtag = 0

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_bytes(self, data):
        self.socket.sendall(data)

    def send(self, topic, payload=None, flags=0, *, nodeid=ANY, routes=(), userid=ANY, rolemask=0):
        """Sends a request. Returns its matchtag."""
        self.matchtag += 1
        if self.credentials[1] & OWNER and userid != ANY:
            self.claims[self.matchtag] = (userid, rolemask or self.credentials[1])
        flags |= ROUTE | TOPIC
        parts = [*routes, b"", topic.encode()]
        if payload is not None:
            flags |= PAYLOAD
            parts.append(payload if isinstance(payload, bytes) else json.dumps(payload).encode() + b"\0")
        parts.append(proto(REQUEST, flags, nodeid, self.matchtag, userid, rolemask))
        self.send_bytes(encode(parts))
        return self.matchtag

    def receive(self):
        header = self._take(8)
        if header[:4] != MAGIC:
            raise ValueError("a frame without its magic")
        response = Response(split(self._take(struct.unpack(">I", header[4:])[0])))
        expected = self.claims.get(response.matchtag, self.credentials)
        if (response.userid, response.rolemask) != expected:
            raise ValueError(
                f"{response.topic}: a response to {expected} has userid {response.userid:#x}"
                f" and rolemask {response.rolemask:#x}"
            )
        return response

    def call(self, topic, payload=None, flags=0, **more):
        """Sends a request, and returns the response, which must be the next message."""
        matchtag = self.send(topic, payload, flags, **more)
        response = self.receive()
        if (response.topic, response.matchtag) != (topic, matchtag):
            raise ValueError(f"{topic} {matchtag} was answered with {response.topic} {response.matchtag}")
        return response

    def ended(self):
        """Whether the daemon ends the connection; discards what it sent before."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True

    def _take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError("the daemon ended the connection")
            data += more
        return data
