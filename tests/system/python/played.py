"""A daemon that a test plays, on a Unix socket."""

import asyncio
import json
import struct
import tempfile

import support  # noqa: F401 (finds the package)

from resourced._message import FrameDecoder, encode_frame

R = {"version": 1, "execution": {"R_lite": [{"rank": "0-3", "children": {"core": "0"}}], "nodelist": ["n[0-3]"]}}
FIRST = {"resources": R, "up": "0-3"}


def response(matchtag, payload=b"{}\0", errnum=0, streaming=False, topic=b"t.x"):
    flags = 0x09 | (0x02 if payload is not None else 0) | (0x40 if streaming else 0)
    body = [] if payload is None else [payload]
    return [b"", topic, *body, struct.pack(">BBBBIIII", 0x8E, 1, 2, flags, 0, 0, errnum, matchtag)]


class Local:
    """A daemon on a Unix socket that answers the first request of each connection with these bytes."""

    def __init__(self, answers, welcome=b"\0"):
        self.answers = list(answers)
        self.welcome = welcome
        self.directory = tempfile.TemporaryDirectory(prefix="resourced-python-")
        self.uri = f"local://{self.directory.name}/local"

    async def serve(self, reader, writer):
        writer.write(self.welcome)
        header = await reader.readexactly(8)
        await reader.readexactly(struct.unpack(">I", header[4:])[0])
        if self.answers:
            writer.write(self.answers.pop(0))
            await writer.drain()
        if await reader.read(1):
            await reader.read()
        writer.close()

    async def __aenter__(self):
        self.server = await asyncio.start_unix_server(self.quietly, self.uri.removeprefix("local://"))
        return self

    async def quietly(self, reader, writer):
        try:
            await self.serve(reader, writer)
        except (EOFError, OSError):
            writer.close()

    async def __aexit__(self, *_):
        self.server.close()
        await self.server.wait_closed()
        self.directory.cleanup()


class Talking(Local):
    """A daemon that answers each request with the bytes that a function makes of its topic, matchtag and payload."""

    def __init__(self, answer):
        super().__init__([])
        self.answer = answer

    async def serve(self, reader, writer):
        writer.write(self.welcome)
        while True:
            header = await reader.readexactly(8)
            body = await reader.readexactly(struct.unpack(">I", header[4:])[0])
            [parts] = FrameDecoder(1 << 20).feed(header + body)
            payload = json.loads(parts[2].removesuffix(b"\0")) if len(parts) > 3 else {}
            writer.write(self.answer(parts[1].decode(), *struct.unpack(">I", parts[-1][-4:]), payload))


def answer(matchtag, payload, **options):
    """The bytes of a response with a JSON payload."""
    return encode_frame(response(matchtag, json.dumps(payload).encode(), **options))
