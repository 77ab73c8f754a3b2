#!/usr/bin/env python3
"""A scheduler of whole nodes, first come, first served: reads `run ID NODES [SECONDS]`, `prolong ID SECONDS` and `end ID`,
prints what it does. With --wait it waits its turn while another scheduler has the resources."""
import asyncio, sys, threading, time
from errno import EBUSY, EDQUOT, EEXIST, EHOSTDOWN, EINVAL, EMSGSIZE, ENOENT, ESTALE

import resourced

# How much each refusal adds to the count of a job. At 8 the job is put aside. A refusal of 0 passes by itself.
REFUSALS = {EDQUOT: 8, EMSGSIZE: 8, EEXIST: 8, EINVAL: 1, ESTALE: 1, EBUSY: 0, EHOSTDOWN: 0, ENOENT: 0}


async def schedule(acquisition, news):
    ledger, jobs, ended, drains, ready, refused = acquisition.ledger, {}, set(), [], False, None
    while True:
        try:
            match item := await news.get():
                case ["run", id, nodes, *seconds] if all(len(word) < 10 and word.isdecimal() for word in item[2:]) and int(nodes):
                    jobs[id] = [int(nodes), sum(map(int, seconds)), 0]  # the last one counts refusals
                case ["end", id]:
                    jobs.pop(id, None)
                    ended.add(id)
                case ["prolong", id, more] if more.isdecimal() and len(more) < 10 and ("", id) in ledger.list():
                    end = (job := ledger.list()["", id].allocation).expiration and job.expiration + int(more)
                    if not end or any(drain.begin < end and drain.ranks & job.resources.ranks for drain in drains):
                        raise resourced.ResourcedError(EHOSTDOWN, "it has no end, or a drain begins before the new one")
                    await ledger.update(id, expiration=end)
                    print("prolonged", id, flush=True)
                case resourced.Acquired() | resourced.Update() | resourced.Lost():
                    causes = sum(getattr(item, "cause", {}).items(), ())
                    print(type(item).__name__.lower(), "up", acquisition.up or "none", *causes, flush=True)
                    ready, later = not isinstance(item, resourced.Lost), getattr(item, "scheduled", None)
                    drains = drains if later is None else later
                    if isinstance(item, resourced.Acquired) or getattr(item, "freed", ()) or getattr(item, "changed", ()):
                        print("running", *(id for partition, id in ledger.list() if not partition), flush=True)
            while ready and (ended or jobs):
                held = {name: entry.allocation.resources.ranks for name, entry in ledger.list().items()}
                ended = {id for id in ended if ("", id) in held}
                id, made = next(iter(jobs), None), []
                if id and not (ended and id == refused):  # either part may have been refused: free alone then
                    nodes, end = jobs[id][0], time.time() + jobs[id][1] if jobs[id][1] else None
                    if nodes > len(acquisition.resources.ranks):
                        raise resourced.ResourcedError(EMSGSIZE, "it wants more nodes than there are")
                    staying = (ranks for name, ranks in held.items() if name[0] or name[1] not in ended)
                    soon = (drain.ranks for drain in drains if not end or drain.begin < end)
                    if len(free := acquisition.up.difference(*staying, *soon)) >= nodes:
                        made = [resourced.Allocation(id, acquisition.resources.copy_ranks(list(free)[:nodes]), end)]
                if not ended and not made:
                    break
                await ledger.change(made, frees=ended)  # in one transaction
                print(*(f"end {gone} {held['', gone]}\n" for gone in sorted(ended)), sep="", end="", flush=True)
                if made and jobs.pop(id):
                    print("run", id, made[0].resources.nodelist, flush=True)  # here the job would start
                ended.clear()
        except resourced.ResourcedError as error:
            if error.local or error.errno not in REFUSALS:
                raise
            refused, job = id, jobs.get(id, [0, 0, 8])
            job[2] += REFUSALS[error.errno]
            if id and job[2] >= 8:
                jobs.pop(id, None)
                print("aside", id, error.text, flush=True)
            asyncio.get_running_loop().call_later(0.1, news.put_nowait, "again")


async def main():
    news, loop = asyncio.Queue(), asyncio.get_running_loop()
    put = lambda line: loop.call_soon_threadsafe(news.put_nowait, line.split())  # a thread reads: no loop can wait for a file
    threading.Thread(target=lambda: [put(line) for line in open(0, errors="replace", closefd=False)], daemon=True).start()
    options = {"ledger": True, "scheduled": True, "cause": True, "wait": "--wait" in sys.argv}
    async with resourced.connect() as link, link.acquire(**options) as acquisition, asyncio.TaskGroup() as group:
        group.create_task(schedule(acquisition, news))
        async for item in acquisition:
            news.put_nowait(item)

try:
    asyncio.run(main())
except* resourced.ResourcedError as errors:
    why = errors.exceptions[0]
sys.exit(f"fifo: {why}")
