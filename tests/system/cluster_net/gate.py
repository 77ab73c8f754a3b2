"""The pause of the clients of a host: a check begins once no request is under way, and none starts until it is over."""

import asyncio
import contextlib


class Gate:
    """Starts closed."""

    def __init__(self):
        self._open = asyncio.Event()
        self._under_way = 0
        self._rest = asyncio.Event()

    @property
    def is_paused(self):
        return not self._open.is_set()

    async def pause(self):
        """Returns once no request is under way."""
        self._open.clear()
        while self._under_way:
            self._rest.clear()
            await self._rest.wait()

    def resume(self):
        self._open.set()

    async def may_send(self):
        """Returns while it is open. The caller enters under_way() before it waits for anything else."""
        # A task that has waited runs some time after the resume, and the next pause may have begun by then.
        while self.is_paused:
            await self._open.wait()

    @contextlib.contextmanager
    def under_way(self):
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._rest.set()
