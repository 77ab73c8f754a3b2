"""Frames of the local connector (RFC 3 over a Unix socket) and messages of the keeper's link, without the product's
code."""

import struct

MAGIC = b"\x12\x00\xee\xff"
REQUEST, RESPONSE = 1, 2
TOPIC, PAYLOAD, NORESPONSE, ROUTE, STREAMING = 1, 2, 4, 8, 64


class Message:
    def __init__(self, type, topic, flags=0, payload=None, routes=(), userid=1000, rolemask=1, aux=0, matchtag=0):
        self.type, self.topic, self.flags, self.payload = type, topic, flags, payload
        self.routes, self.userid, self.rolemask, self.aux, self.matchtag = list(routes), userid, rolemask, aux, matchtag

    def encode(self):
        parts = [route.encode() for route in self.routes] + [b"", self.topic.encode()]
        flags = self.flags | TOPIC | ROUTE
        if self.payload is not None:
            parts.append(self.payload)
            flags |= PAYLOAD
        parts.append(
            struct.pack(">BBBBIIII", 0x8E, 1, self.type, flags, self.userid, self.rolemask, self.aux, self.matchtag)
        )
        body = b"".join(
            (bytes([len(part)]) if len(part) < 255 else b"\xff" + struct.pack(">I", len(part))) + part for part in parts
        )
        return MAGIC + struct.pack(">I", len(body)) + body

    def response(self, payload=None, errnum=0):
        return Message(
            RESPONSE, self.topic, self.flags & STREAMING, payload, self.routes, self.userid, self.rolemask, errnum, self.matchtag
        )


def decode(frame):
    parts, at = [], 8
    while at < len(frame):
        size = frame[at]
        at += 1
        if size == 255:
            (size,) = struct.unpack_from(">I", frame, at)
            at += 4
        parts.append(frame[at : at + size])
        at += size
    _, _, type, flags, userid, rolemask, aux, matchtag = struct.unpack(">BBBBIIII", parts.pop())
    routes = []
    while flags & ROUTE and (route := parts.pop(0)):
        routes.append(route.decode())
    topic = parts.pop(0).decode() if flags & TOPIC else ""
    payload = parts.pop(0) if flags & PAYLOAD else None
    return Message(type, topic, flags, payload, routes, userid, rolemask, aux, matchtag)


def take(socket, size):
    got = b""
    while len(got) < size:
        more = socket.recv(size - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def read_frame(socket):
    header = take(socket, 8)
    assert header[:4] == MAGIC, header
    return header + take(socket, struct.unpack(">I", header[4:])[0])


def read_link(socket):
    mark = take(socket, struct.unpack(">I", take(socket, 4))[0])
    return mark, take(socket, struct.unpack(">I", take(socket, 4))[0])


def link_message(mark, frame=b""):
    return struct.pack(">I", len(mark)) + mark + struct.pack(">I", len(frame)) + frame
