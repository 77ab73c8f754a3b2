#!/usr/bin/env python3
"""A scheduler of whole nodes, first come, first served: reads `run ID NODES` and `end ID`, prints what it does."""
import asyncio
import sys
import threading
from collections import Counter
from errno import EBUSY, EDQUOT, EEXIST, EHOSTDOWN, EINVAL, EMSGSIZE, ENOENT, ESTALE

import resourced

# After so many refusals with these errors a job is put aside, although it could be satisfied. Others pass.
MOST_REFUSALS = {EDQUOT: 1, EMSGSIZE: 1, EINVAL: 8, ESTALE: 8}
PASSING = (EBUSY, EEXIST, EHOSTDOWN, ENOENT)


def read(loop, news):
    for line in open(0, errors="replace", closefd=False):  # a thread reads: no loop can wait for a file
        loop.call_soon_threadsafe(news.put_nowait, line.split())


async def forward(items, news):
    async for item in items:
        news.put_nowait(item)


async def schedule(acquisition, news):
    ledger, jobs, ready = acquisition.ledger, {}, False  # the nodes of each job by its id, 0 for ended jobs
    refusals = Counter()
    while True:
        match item := await news.get():
            case ["run", id, nodes] if nodes.isdecimal():
                jobs[id], refusals[id] = int(nodes), 0
            case ["end", id]:
                jobs[id] = 0
            case resourced.Acquired() | resourced.Update() | resourced.Lost():
                print(type(item).__name__.lower(), "up", acquisition.up or "none", flush=True)
                ready = not isinstance(item, resourced.Lost)
                if isinstance(item, resourced.Acquired) or getattr(item, "freed", ()) or getattr(item, "changed", ()):
                    print("running", *(id for partition, id in ledger.list() if not partition), flush=True)
        if not ready:
            continue
        try:
            for id, nodes in sorted(jobs.items(), key=lambda job: job[1] > 0):  # ended jobs first
                running = {name: entry.allocation.resources.ranks for name, entry in ledger.list().items()}
                if not nodes and ("", id) in running:
                    await ledger.change(frees=[id])
                    print("end", id, running["", id], flush=True)
                elif nodes and ("", id) not in running:
                    if len(free := acquisition.up.difference(*running.values())) < nodes:
                        break
                    chosen = acquisition.resources.copy_ranks(list(free)[:nodes])
                    await ledger.change([resourced.Allocation(id, chosen)])
                    print("run", id, chosen.nodelist, flush=True)  # here the job would start
                del jobs[id]
        except resourced.ResourcedError as error:
            if error.local or error.errno not in (*PASSING, *MOST_REFUSALS):
                raise
            refusals[id] += error.errno in MOST_REFUSALS
            if error.errno in MOST_REFUSALS and refusals[id] >= MOST_REFUSALS[error.errno]:
                print("aside", id, error.text, flush=True)
                del jobs[id]
            asyncio.get_running_loop().call_later(0.1, news.put_nowait, "again")


async def main():
    news = asyncio.Queue()
    threading.Thread(target=read, args=(asyncio.get_running_loop(), news), daemon=True).start()
    async with resourced.connect() as connection, connection.acquire(ledger=True) as acquisition:
        await asyncio.gather(forward(acquisition, news), schedule(acquisition, news))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except resourced.ResourcedError as error:
        sys.exit(f"fifo: {error}")
