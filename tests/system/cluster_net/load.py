"""The clients of one host: operators, schedulers, readers of the status, followers of the journal.

The argument is a JSON object: `uris` by the names of the daemons, `key`, `binaries`, `seed`, and the names of the
`clients`, and of the daemons to `read`. Standard output has a record of each answer, one a line, for the checker
(checker.py); times are those of the steady clock, which all processes of a machine share. Commands on standard input:
`pause` stops new requests, and is answered with a record `paused` once none is under way; `resume`; `show`, with a
record of the picture of each scheduler and of the status of each daemon that is read, and then one `shown`.
"""

import asyncio
import json
import os
import sys
import time

from load_schedulers import CommandScheduler, ExactScheduler, PackageScheduler
from load_support import Client, Host, connection_to

from resourced import ResourcedError

RANKS = 8


def change_for(host, name, number):
    """A drain or undrain with a reason of its own, by which the log shows it."""
    is_drain = host.random.random() < 0.6
    rank = str(host.random.randrange(RANKS))
    payload = {"targets": rank, "reason": f"{name}-{number}"}
    return ("drain", payload | {"mode": "overwrite"}) if is_drain else ("undrain", payload)


class Operator:
    """Keeps some requests under way to the leader; finds it by the epochs that the daemons tell on its connections."""

    def __init__(self, host, name, depth=4, per_second=30):
        self.host, self.name, self.pause = host, name, depth / per_second
        self.client = Client(host, name)
        self.number = 0
        for _ in range(depth):
            host.run(self.operate())

    async def operate(self):
        while True:
            await self.host.may_send()
            connection = await self.client.connection()
            if self.host.is_paused:
                continue
            self.number += 1
            name, payload = change_for(self.host, self.name, self.number)
            await self.host.change(connection, name, payload["reason"], payload, client=self.name,
                                   targets=payload["targets"], epoch=self.client.epoch, link=self.client.number,
                                   order=self.number)
            await asyncio.sleep(self.pause)


class PackageOperator:
    """An operator whose leader is found by the Python package."""

    def __init__(self, host, name):
        self.host, self.name = host, name
        host.run(self.operate())

    async def operate(self):
        connection = connection_to(self.host, self.host.all_uris)
        number = 0
        while True:
            await self.host.may_send()
            number += 1
            name, payload = change_for(self.host, self.name, number)
            await self.host.change(connection, name, payload["reason"], payload, client=self.name,
                                   targets=payload["targets"])
            await asyncio.sleep(0.05)


class CommandOperator:
    """An operator that runs resourcectl for each change, and so uses the C++ library."""

    #: Error texts of changes that were not made. After any other error the change may have been made.
    REFUSALS = "not drained", "does not lead", "nothing can be changed"

    def __init__(self, host, name):
        self.host, self.name = host, name
        host.run(self.operate())

    async def operate(self):
        number = 0
        while True:
            await self.host.may_send()
            number += 1
            name, payload = change_for(self.host, self.name, number)
            sent = time.monotonic()
            with self.host.under_way():
                mode = ["-f"] if name == "drain" else []
                status, text = await self.host.resourcectl(name, *mode, payload["targets"], payload["reason"])
                # The lines before the last one say why it waits for a leader, in the words of a refusal.
                why = text.rpartition("\n")[2]
                outcome = "ok" if status == 0 else "error" if any(one in why for one in self.REFUSALS) else "unknown"
                self.host.record("change", name=name, id=payload["reason"], targets=payload["targets"],
                                 client=self.name, sent=sent, done=time.monotonic(), outcome=outcome, text=text)
            await asyncio.sleep(0.3)


class Reader:
    """Reads the status of one daemon, as leader and as standby."""

    def __init__(self, host, name, member):
        self.host, self.name, self.member = host, name, member
        host.run(self.read())

    async def read(self):
        while True:
            connection = connection_to(self.host, self.host.uris[self.member])
            try:
                while True:
                    await self.host.may_send()
                    with self.host.under_way():
                        await self.look(connection)
                    await asyncio.sleep(0.25)
            except ResourcedError:
                await connection.close()
                await asyncio.sleep(0.1)

    async def look(self, connection):
        sent = time.monotonic()
        status = await connection.call("resource.status", timeout=3)
        self.host.record("status", reader=self.name, member=self.member, sent=sent, done=time.monotonic(),
                         status={key: value for key, value in status.items() if key != "R"})

    async def show(self):
        while True:
            connection = connection_to(self.host, self.host.uris[self.member])
            try:
                return await self.look(connection)
            except ResourcedError:
                await asyncio.sleep(0.1)
            finally:
                await connection.close()


class Follower:
    """Follows the journal of one daemon, also over its restarts."""

    def __init__(self, host, name, member):
        self.host, self.name, self.member = host, name, member
        host.run(self.follow())

    async def follow(self):
        after = 0
        while True:
            connection = connection_to(self.host, self.host.uris[self.member])
            try:
                async with connection.journal(after=after, allocations=True, follow_restart=True) as journal:
                    async for batch in journal:
                        after = journal.after
                        events = [[event.timestamp, event.name, event.context] for event in batch.events]
                        self.host.record("journal", follower=self.name, member=self.member, last=batch.last,
                                         events=events)
            except ResourcedError as error:
                self.host.record("journal-error", follower=self.name, member=self.member, errno=error.errno,
                                 local=error.local, text=error.text)
            await connection.close()
            await asyncio.sleep(0.1)


def fail(loop, context):
    """Ends the program on an error in a callback, which would be lost otherwise."""
    loop.default_exception_handler(context)
    os._exit(1)


async def main():
    asyncio.get_running_loop().set_exception_handler(fail)
    host = Host(json.loads(sys.argv[1]))
    kinds = {"operator": Operator, "package": PackageOperator, "command": CommandOperator, "exact": ExactScheduler,
             "acquisition": PackageScheduler, "acquire": CommandScheduler}
    clients = [kinds[name.rstrip("0123456789")](host, name) for name in host.settings["clients"]]
    for member in host.settings["read"]:
        clients.append(Reader(host, f"reader-{member}", member))
        Follower(host, f"follower-{member}", member)
    await host.obey([client for client in clients if hasattr(client, "show")])


if __name__ == "__main__":
    asyncio.run(main())
