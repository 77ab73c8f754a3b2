"""Shared by the clients of a host (load.py): records, the pause, and the search for the leader."""

import asyncio
import contextlib
import ctypes
import errno
import json
import os
import random
import signal
import sys
import time

import resourced
from gate import Gate
from resourced import ResourcedError


PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def end_with_parent():
    """Lets a process that is about to start end with its parent, as the clients of a host are killed at the end."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def connection_to(host, uri, kind=resourced.Connection):
    return kind(uri, key_file=host.settings["key"], connect_timeout=1, linger=0,
                heartbeat_interval=0.5, heartbeat_timeout=2, retry_most=0.2)


class Host(Gate):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.uris = settings["uris"]
        self.all_uris = ",".join(self.uris.values())
        self.random = random.Random(settings["seed"])
        self._tasks = set()

    # Records

    def record(self, kind, **fields):
        sys.stdout.write(json.dumps({"kind": kind, **fields}) + "\n")
        sys.stdout.flush()

    def response(self, scheduler, payload):
        """Records a response without its large parts, for a person who reads the records."""
        short = {key: value for key, value in payload.items() if key not in ("resources", "allocations")}
        self.record("response", scheduler=scheduler, at=time.monotonic(), payload=short)

    async def change(self, connection, name, id, payload, *, topic=None, **more):
        """Sends a change and records its outcome. Returns whether it was made."""
        record = {"name": name, "id": id, "sent": time.monotonic(), "outcome": "ok", **more}
        with self.under_way():
            try:
                await connection.call(topic or f"resource.{name}", payload)
            except ResourcedError as error:
                record |= {"outcome": "unknown" if error.local else "error", "errno": error.errno, "text": error.text}
            self.record("change", done=time.monotonic(), **record)
        return record["outcome"] == "ok"

    async def resourcectl(self, *arguments):
        process = await asyncio.create_subprocess_exec(
            f"{self.settings['binaries']}/resourcectl", "--uri", self.all_uris, *arguments, env=self.environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            preexec_fn=end_with_parent)
        _, text = await process.communicate()
        return process.returncode, text.decode().strip()

    @property
    def environment(self):
        return os.environ | {"RESOURCED_KEY": self.settings["key"]}

    # Tasks

    def run(self, work):
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task):
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()

    async def obey(self, shown):
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            match line.decode().strip():
                case "pause":
                    await self.pause()
                    self.record("paused")
                case "resume":
                    self.resume()
                case "show":
                    for client in shown:
                        await client.show()
                    self.record("shown")


class OneConnection(resourced.Connection):
    """A connection that does not reconnect, so that all its answers are from one connection of the transport."""

    is_lost = False

    def link_lost(self):
        self.is_lost = True
        super().link_lost()

    def submit(self, request):
        if self.is_lost:
            raise ResourcedError(errno.ENOTCONN, "the connection was lost", local=True)
        super().submit(request)


class Client:
    """Has a connection to each daemon, and asks each whether it leads. The one with the highest epoch gets the
    requests; those that were sent to another one are then given up."""

    def __init__(self, host, name, leads=None):
        self.host, self.name = host, name
        self.epoch = self.number = 0
        self._connection = None
        self._found = asyncio.Event()
        self._leads = leads
        for member, uri in host.uris.items():
            host.run(self._watch(member, uri))

    async def connection(self):
        await self._found.wait()
        return self._connection

    async def _watch(self, member, uri):
        while True:
            connection = connection_to(self.host, uri, OneConnection)
            with contextlib.suppress(ResourcedError):
                await connection.connect()
                while not connection.is_lost:
                    await self._ask(member, connection)
                    await asyncio.sleep(0.25)
            if self._connection is connection:
                self._connection = None
                self._found.clear()
            await connection.close()
            await asyncio.sleep(0.05)

    async def _ask(self, member, connection):
        sent = time.monotonic()
        try:
            epoch = (await connection.call("resource.leader", timeout=2))["epoch"]
        except ResourcedError as error:
            if error.local:
                raise
            return
        self.host.record("leader", client=self.name, member=member, epoch=epoch, sent=sent, done=time.monotonic())
        if epoch < self.epoch or self._connection is connection:
            return
        former, self._connection = self._connection, connection
        self.epoch = epoch
        self.number += 1
        self._found.set()
        # Tell this before the former connection is closed: another daemon may lead by the end of that, and would be
        # told first.
        if self._leads:
            self._leads(connection)
        if former:
            await former.close()
