"""Base class for tests of the asyncio package with daemons."""

import asyncio
import errno
import unittest

from support import PATIENCE, Daemon, bin_directory

import resourced
from resourced import Acquired, ResourcedError

BIN = bin_directory()


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with a time limit."""

    def _callTestMethod(self, method):
        async def bounded():
            asyncio.get_running_loop().slow_callback_duration = PATIENCE  # tests start daemons within the loop
            async with asyncio.timeout(PATIENCE):
                await method()

        super()._callTestMethod(bounded)

    def daemon(self, *args, **options):
        return self.enterContext(Daemon(BIN, *args, **options))

    async def connect(self, uri, **options):
        return await self.enterAsyncContext(resourced.connect(uri, **options))

    async def fails(self, errnum, awaitable, text="", local=False):
        with self.assertRaises(ResourcedError) as caught:
            await awaitable
        error = caught.exception
        self.assertEqual((errno.errorcode.get(error.errno), error.local), (errno.errorcode[errnum], local), error)
        self.assertIn(text, error.text)
        self.assertTrue(str(error).isprintable())
        return error


async def first(acquisition):
    event = await anext(acquisition)
    assert isinstance(event, Acquired), event
    return event


async def until(acquisition, condition):
    """Reads changes until the state meets the condition."""
    while not condition(acquisition):
        await anext(acquisition)
