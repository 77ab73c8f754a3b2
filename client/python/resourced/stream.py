"""The responses to a streaming request."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from resourced._message import STREAMING, Response
from resourced._requests import Reader, Request, awaited
from resourced.errors import ResourcedError

#: Maximum number of unread responses of a stream, and of bytes in them.
MAX_UNREAD, MAX_UNREAD_BYTES = 4096, 64 << 20


class Sender(Protocol):
    """The interface of the connection."""

    def submit(self, request: Request) -> None: ...
    def cancel(self, request: Request) -> None: ...
    async def end(self, request: Request) -> None: ...


class Stream(Reader[dict[str, Any]], Request):
    """The responses to a streaming request. The iteration stops with the daemon's ENODATA, and raises any other error. If
    too many responses are not read, the request is cancelled, and a local EOVERFLOW follows them."""

    def __init__(self, connection: Sender, topic: str, payload: Mapping[str, Any], wait_for_daemon: bool) -> None:
        super().__init__(topic, payload, flags=STREAMING, wait_for_daemon=wait_for_daemon)
        self._connection = connection
        self._unread: deque[Response] = deque()
        self._unread_bytes = 0
        self._end: ResourcedError | None = None
        self._closed = False
        self._news = asyncio.Event()
        connection.submit(self)

    def receive(self, response: Response) -> None:
        self._unread.append(response)
        self._unread_bytes += len(response.text)
        if not response.more:
            self._end = ResourcedError(errno.ENODATA)
        elif len(self._unread) > 1 and (len(self._unread) > MAX_UNREAD or self._unread_bytes > MAX_UNREAD_BYTES):
            self._connection.cancel(self)
            self._end = ResourcedError(errno.EOVERFLOW, f"{self.topic}: too many responses were not read", local=True)
        self._news.set()

    def fail(self, error: ResourcedError) -> None:
        self._end = error
        self._news.set()

    @property
    def _has_news(self) -> bool:
        return bool(self._closed or self._unread or self._end)

    async def __anext__(self) -> dict[str, Any]:
        while not self._unread:
            if self._closed or (self._end and self._end.errno == errno.ENODATA and not self._end.local):
                raise StopAsyncIteration
            if self._end:
                raise self._end.with_traceback(None)
            self._news.clear()
            with awaited(self):
                await self._news.wait()
        response = self._unread.popleft()
        self._unread_bytes -= len(response.text)
        return response.payload()

    async def close(self) -> None:
        self._closed = True
        self._unread.clear()
        self._news.set()
        await self._connection.end(self)
