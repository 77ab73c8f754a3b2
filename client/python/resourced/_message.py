"""Messages of RFC 3 as far as a client needs them, and their frames on a Unix socket. This module does no input or
output."""

from __future__ import annotations

import errno
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resourced._json import read_json
from resourced.errors import ResourcedError

TOPIC, PAYLOAD, NORESPONSE, ROUTE, STREAMING = 0x01, 0x02, 0x04, 0x08, 0x40
ANY = 0xFFFFFFFF
#: Maximum number of parts of a message, longer ones are dropped: a response has a delimiter, a topic, a payload and
#: PROTO.
MAX_PARTS = 16

_PROTO = struct.Struct(">BBBBIIII")
_MAGIC, _VERSION, _REQUEST, _RESPONSE = 0x8E, 1, 1, 2
_FRAME_MAGIC = b"\x12\x00\xee\xff"
_HEADER = len(_FRAME_MAGIC) + 4


def encode_payload(payload: Mapping[str, Any] | None) -> bytes | None:
    """Encodes a payload. Raises TypeError or ValueError for values that JSON does not have."""
    if payload is None:
        return None
    return json.dumps(payload, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode() + b"\0"


def request_parts(topic: str, payload: bytes | None, matchtag: int, flags: int = 0) -> list[bytes]:
    flags |= TOPIC | ROUTE | (PAYLOAD if payload is not None else 0)
    body = [] if payload is None else [payload]
    return [b"", topic.encode(), *body, _PROTO.pack(_MAGIC, _VERSION, _REQUEST, flags, ANY, 0, ANY, matchtag)]


@dataclass(frozen=True)
class Response:
    topic: str
    matchtag: int
    errnum: int
    #: Whether other responses follow.
    more: bool
    text: bytes

    def error(self) -> ResourcedError:
        if self.errnum > 0x7FFFFFFF:
            return ResourcedError(errno.EPROTO, f"{self.topic}: response with errnum {self.errnum}")
        return ResourcedError(self.errnum, self.text[:4096].decode(errors="replace"))

    def payload(self) -> dict[str, Any]:
        """Returns the payload, an empty object if there is none. Raises EPROTO for one that is no JSON object."""
        if not self.text:
            return {}
        try:
            value = read_json(self.text.decode())
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ResourcedError(errno.EPROTO, f"{self.topic}: payload is not a JSON object", local=True)
        return value


def read_response(parts: Sequence[bytes]) -> Response | None:
    """Reads a response. Returns None for parts that are no response of this protocol: they belong to no request."""
    if len(parts) > MAX_PARTS or len(parts) < 3 or len(parts[-1]) != _PROTO.size:
        return None
    magic, version, kind, flags, _, _, errnum, matchtag = _PROTO.unpack(parts[-1])
    if (magic, version, kind) != (_MAGIC, _VERSION, _RESPONSE) or not flags & TOPIC or not flags & ROUTE or parts[0]:
        return None
    if len(parts) != (4 if flags & PAYLOAD else 3):
        return None
    topic = parts[1].removesuffix(b"\0")
    if not topic or len(topic) > 255 or not all(0x20 < byte < 0x7F for byte in topic):
        return None
    text = parts[2].removesuffix(b"\0") if flags & PAYLOAD else b""
    return Response(topic.decode(), matchtag, errnum, errnum == 0 and bool(flags & STREAMING), text)


def encode_frame(parts: Sequence[bytes]) -> bytes:
    body = b"".join(
        (bytes([len(part)]) if len(part) < 255 else b"\xff" + struct.pack(">I", len(part))) + part for part in parts
    )
    return _FRAME_MAGIC + struct.pack(">I", len(body)) + body


class FrameDecoder:
    """Splits a stream of bytes into frames, and these into parts. Buffers at most one frame and one feed."""

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[list[bytes]]:
        """Yields the frames that are complete now. Raises ValueError for bytes that cannot be split into frames."""
        self._buffer += data
        begin = 0
        try:
            while len(self._buffer) - begin >= _HEADER:
                if self._buffer[begin : begin + 4] != _FRAME_MAGIC:
                    raise ValueError("local frame: wrong magic")
                (length,) = struct.unpack_from(">I", self._buffer, begin + 4)
                if not _PROTO.size < length <= self._max_frame:
                    raise ValueError(f"local frame: length {length} is not between {_PROTO.size + 1} and {self._max_frame}")
                if len(self._buffer) - begin - _HEADER < length:
                    break
                body = bytes(memoryview(self._buffer)[begin + _HEADER : begin + _HEADER + length])
                begin += _HEADER + length
                yield _split(body)
        finally:
            del self._buffer[:begin]


def _split(body: bytes) -> list[bytes]:
    parts: list[bytes] = []
    at = 0
    while at < len(body):
        size, at = body[at], at + 1
        if size == 255:
            if len(body) - at < 4:
                raise ValueError("local frame: the length of a part is cut off")
            (size,) = struct.unpack_from(">I", body, at)
            at += 4
        if size > len(body) - at:
            raise ValueError("local frame: a part is longer than its frame")
        if len(parts) == MAX_PARTS:
            raise ValueError(f"local frame: more than {MAX_PARTS} parts")
        parts.append(body[at : at + size])
        at += size
    return parts
