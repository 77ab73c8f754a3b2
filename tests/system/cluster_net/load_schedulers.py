"""Schedulers that keep a picture of the targets that are up, and the ledger of their allocations."""

import asyncio
import contextlib
import errno
import json
import time

from load_support import Client, connection_to, end_with_parent
from resourced import Acquired, IDset, Lost, ResourcedError, ResourceSet
from resourced._message import STREAMING
from resourced._requests import Request


def of_one_node(rank):
    return ResourceSet.of(str(rank), "0-3", f"n{rank}")


class Ledger:
    """Allocates whole nodes and frees them again. After each reconnection the daemon tells it what it has allocated."""

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.number = 0
        #: The id of the allocation on each rank; None until the daemon has told them.
        self.held = None

    def take(self, allocations):
        self.held = {next(iter(ranks)): id for id, ranks in allocations}

    async def work(self, connection, up, **more):
        """Makes one change of the ledger, if there is something to change."""
        if self.held is None:
            return
        held = self.held
        self.number += 1
        if held and (self.host.random.random() < 0.5 or not set(up) - held.keys()):
            rank, id = self.host.random.choice(sorted(held.items()))
            topic, name, payload, target = "resource.free", "free", {"id": id}, rank
        elif free := sorted(set(up) - held.keys()):
            target, id = self.host.random.choice(free), f"{self.name}-{self.number}"
            topic, name = "resource.alloc", "alloc"
            payload = {"id": id, "R": json.loads(of_one_node(target).encode())}
        else:
            return
        if await self.host.change(connection, name, id, payload, topic=topic, client=self.name, targets=str(target),
                                  **more):
            if name == "alloc":
                held[target] = id
            else:
                held.pop(target, None)


class _Acquire(Request):
    def __init__(self, scheduler, partition):
        super().__init__("resource.acquire", {"partition": partition, "allocations": True}, flags=STREAMING)
        self.scheduler = scheduler

    def receive(self, response):
        self.scheduler.on_response(self, response.payload())

    def fail(self, error):
        self.scheduler.on_end(self, error)


class ExactScheduler:
    """Records its picture after each answer on the connection, which comes after all changes before it."""

    PARTITION = "night"

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.client = Client(host, name, self.acquire)
        self.ledger = Ledger(host, name)
        self.request = None
        #: None while nothing is acquired.
        self.up = None
        host.run(self.work())

    def acquire(self, connection):
        self.up = self.ledger.held = None
        self.request = _Acquire(self, self.PARTITION)
        try:
            connection.submit(self.request)
        except ResourcedError as error:
            self.on_end(self.request, error)

    def on_response(self, request, payload):
        if self.request is not request:
            return
        self.host.response(self.name, payload)
        if self.up is None:
            self.up = set(IDset(payload["up"]))
            self.host.record("acquired", scheduler=self.name, epoch=payload["epoch"], at=time.monotonic())
            self.ledger.take((one["id"], ResourceSet(one["R"]).ranks) for one in payload["allocations"])
            return
        self.up |= set(IDset(payload.get("up", "")))
        self.up -= set(IDset(payload.get("down", "")))

    def on_end(self, request, error):
        if self.request is not request:
            return
        self.request = self.up = None
        if not error.local:
            self.host.run(self.again(error))

    async def again(self, error):
        if error.errno not in (errno.EBUSY, errno.EHOSTUNREACH, errno.ECANCELED, errno.EAGAIN):
            self.host.record("scheduler-error", scheduler=self.name, errno=error.errno, text=error.text)
        await asyncio.sleep(0.1)
        connection = await self.client.connection()
        if self.request is None:
            self.acquire(connection)

    async def work(self):
        while True:
            await self.host.may_send()
            await asyncio.sleep(0.1)
            connection = await self.client.connection()
            if self.up is None or self.host.is_paused:
                continue
            with self.host.under_way():
                await self.ledger.work(connection, self.up, epoch=self.client.epoch, link=self.client.number,
                                       order=self.ledger.number)
                with contextlib.suppress(ResourcedError):
                    await self.look(connection)

    async def look(self, connection):
        request, sent = self.request, time.monotonic()
        # Changes are sent after the responses of the same turn of the daemon's loop, and before those of the next turn.
        for _ in range(2):
            await connection.call("resource.ping", {})
        if self.up is not None and request is self.request:
            self.host.record("picture", scheduler=self.name, partition=self.PARTITION, up=sorted(self.up), sent=sent,
                             done=time.monotonic())

    async def show(self):
        self.host.record("picture", scheduler=self.name, partition=self.PARTITION,
                         up=None if self.up is None else sorted(self.up))


class PackageScheduler:
    """Iterates over an acquisition of the Python package."""

    PARTITION = ""

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.ledger = Ledger(host, name)
        self.acquisition = None
        self.connection = connection_to(host, host.all_uris)
        host.run(self.follow())
        host.run(self.work())

    async def follow(self):
        wanted = self.connection.acquire(allocations=True, follow_restart=True, wait_for_daemon=True)
        async with wanted as self.acquisition:
            async for event in self.acquisition:
                if isinstance(event, Acquired):
                    self.ledger.take((one.id, one.resources.ranks) for one in event.allocations)
                elif isinstance(event, Lost):
                    self.ledger.held = None
        self.host.record("scheduler-error", scheduler=self.name, errno=0, text="the acquisition has ended")

    async def work(self):
        while True:
            await self.host.may_send()
            await asyncio.sleep(0.2)
            if self.acquisition and not self.host.is_paused:
                await self.ledger.work(self.connection, self.acquisition.up)

    async def show(self):
        up = sorted(self.acquisition.up) if self.ledger.held is not None else None
        self.host.record("picture", scheduler=self.name, partition=self.PARTITION, up=up)


class CommandScheduler:
    """Reads the output of `resourcectl acquire`, and so that of the C++ library."""

    PARTITION = "day"

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.up = None
        host.run(self.follow())

    async def follow(self):
        process = await asyncio.create_subprocess_exec(
            f"{self.host.settings['binaries']}/resourcectl", "--uri", self.host.all_uris, "acquire", "--wait",
            "--follow-restart", "--partition", self.PARTITION, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=self.host.environment,
            preexec_fn=end_with_parent)
        while line := await process.stdout.readline():
            payload = json.loads(line)
            self.host.response(self.name, payload)
            if "resources" in payload:
                self.up = set()
                self.host.record("acquired", scheduler=self.name, epoch=payload["epoch"], at=time.monotonic())
            self.up |= set(IDset(payload.get("up", "")))
            self.up -= set(IDset(payload.get("down", "")))
        text = (await process.stderr.read()).decode().strip()
        self.host.record("scheduler-error", scheduler=self.name, errno=0, text=f"resourcectl acquire has ended: {text}")

    async def show(self):
        self.host.record("picture", scheduler=self.name, partition=self.PARTITION,
                         up=None if self.up is None else sorted(self.up))
