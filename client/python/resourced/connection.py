"""A connection with a function for each group of topics of the daemon (docs/protocol.md)."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from resourced._json import entries, member
from resourced._repeats import is_standby_refusal
from resourced.acquisition import Acquisition
from resourced.allocations import Allocation, Freed
from resourced.errors import ResourcedError, check_time
from resourced.hostlist import Hostlist
from resourced.idset import IDset
from resourced.journal import Journal
from resourced.report import Report, ReportGroups, read_report
from resourced.resource_set import ResourceSet, ResourcesLike
from resourced.rpc import RpcConnection

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5

#: The effect of a drain on targets that are drained with a reason already: they keep it, they get the new reason, or the
#: new reason and time. In undrain() all three skip targets that are not drained.
DrainMode: TypeAlias = Literal["update", "overwrite", "force-overwrite"]
#: What wait() waits for: no target has an allocation; all are online and healthy; all have a scheduler that reports its
#: allocations.
WaitCondition: TypeAlias = Literal["idle", "ready", "reported"]


@dataclass(frozen=True)
class Drain:
    ranks: IDset
    timestamp: float
    reason: str
    until: float | None
    #: The site's ticket for this work.
    ticket: str | None = None


@dataclass(frozen=True)
class Status:
    """The states of all targets (`resource.status`)."""

    resources: ResourceSet
    drains: list[Drain]
    drained: IDset
    online: IDset
    offline: IDset
    excluded: IDset
    torpid: IDset
    allocated: IDset
    #: All keys of the response.
    payload: dict[str, Any]


@dataclass(frozen=True)
class SchedStatus:
    """The inventory for schedulers (`resource.sched-status`), without excluded targets."""

    all: ResourceSet
    down: ResourceSet
    allocated: ResourceSet
    #: The targets whose scheduler reports its allocations; None in a Flux instance, where it holds for all.
    reported: IDset | None

    @property
    def up(self) -> ResourceSet:
        return self.all - self.down

    @property
    def free(self) -> ResourceSet:
        """The resources that are up and not allocated. On targets that are not `reported`, unknown jobs may run."""
        return self.up - self.allocated


@dataclass(frozen=True)
class Peer:
    """A scheduler that has resources, or waits for them."""

    #: "" for the targets in no partition.
    partition: str
    since: float
    #: The user, key or address of the scheduler, such as "uid 1000"; None if it is not known.
    by: str | None
    #: The targets that the scheduler has; empty for one that waits.
    targets: IDset = field(default_factory=IDset)
    #: Whether the scheduler records its allocations in the ledger.
    allocations: bool = False
    #: The time until which the targets are kept for the scheduler, if its connection is lost; otherwise None.
    kept_until: float | None = None


@dataclass(frozen=True)
class Peers:
    holders: list[Peer]
    #: The schedulers that wait for resources, the next one first.
    waiting: list[Peer]
    #: The targets whose node agents are connected.
    agents: IDset


class Connection(RpcConnection):
    __doc__ = RpcConnection.__doc__

    # Schedulers

    def acquire(
        self,
        *,
        partition: str | None = None,
        allocations: bool = False,
        ledger: bool = False,
        wait: bool = False,
        lease: float | None = 30.0,
        follow_restart: bool = True,
        wait_for_daemon: bool = False,
        busy_retry: float = 30.0,
        answer_timeout: float = 300.0,
        scheduled: bool = False,
        cause: bool = False,
    ) -> Acquisition:
        """Acquires the resources of the partition, or all that are in no partition, as a scheduler.

        With `allocations` the scheduler keeps the ledger, and gets the present allocations. With `ledger` it learns
        as well how others change them (Update.freed, changed, expired). With `wait` it waits for its turn while
        another scheduler has the resources. With `scheduled` it learns which drains begin later, and with `cause` why
        targets went down. EPROTO: the daemon does not know one of these, as its version is older, or keeps no ledger.

        The daemon frees the resources when no request has come from this connection for the time of the `lease`, 5 to
        3600 seconds (ETIMEDOUT). The acquisition renews the lease as long as the event loop runs. The event loop of a
        synchronous connection runs within its calls only: make a call in each third of the time, or ask for a longer
        lease. With None there is no lease: a program that hangs keeps its resources until an operator evicts it.

        After a clean shutdown of the daemon the acquisition waits for the next one, but without `follow_restart` it
        ends, unless the connection has several addresses. With `wait_for_daemon` it waits for a daemon that is not
        running yet. Without it the first connection has to succeed; after a lost connection, also before the first
        Acquired, the acquisition always waits for the next daemon. After a reconnection the request is repeated for
        `busy_retry` seconds if the resources are still busy, because the daemon has not noticed the end of the former
        connection yet. A request that the daemon does not answer within `answer_timeout` seconds ends the acquisition
        with ETIMEDOUT; math.inf waits for ever. A daemon answers once it knows its inventory, which it may have to
        discover first. EINVAL: one of these times is not one.
        """
        if lease is not None:
            check_time("lease", lease)
        check_time("busy_retry", busy_retry, least=0)
        check_time("answer_timeout", answer_timeout, least=0)
        return Acquisition(
            self,
            partition=partition,
            allocations=allocations,
            wait=wait,
            lease=lease,
            follow_restart=follow_restart,
            wait_for_daemon=wait_for_daemon,
            busy_retry=busy_retry,
            answer_timeout=answer_timeout,
            extensions={"ledger": ledger, "scheduled": scheduled, "cause": cause},
        )

    async def alloc(
        self, id: str, resources: ResourcesLike, *, expiration: float | None = None, note: str | None = None
    ) -> None:
        """Records an allocation, which is on disk when the function returns. Errors of the daemon: EEXIST for an id
        that is in use, EBUSY for a core or gpu that is allocated, EHOSTDOWN for a target that is drained or excluded,
        ESTALE for a property that a target has no more, EINVAL for resources that are not in the inventory, EPERM for
        targets that this connection has not acquired, EMSGSIZE for a request that is too large, EDQUOT for a ledger
        that is full, EAGAIN if the daemon cannot make the change now. After a local error the change may have been
        made or not: the allocations after the next acquire show it, or alloc_all() with `repeat` sends it again."""
        await self.alloc_all([Allocation(id, ResourceSet(resources), expiration, note)])

    async def alloc_all(
        self, allocations: Iterable[Allocation], *, frees: Iterable[Freed] = (), repeat: bool = False
    ) -> None:
        """Frees allocations, then records others: all of it or nothing, in one step. `repeat` says that the same change
        may have been sent before: an allocation that exists as it is here counts as made, and an id or rank that is gone
        as freed."""
        payload = {
            "allocations": [allocation.payload() for allocation in allocations],
            "free": [freed.payload() for freed in frees],
        }
        await self.call("resource.alloc", payload | ({"repeat": True} if repeat else {}))

    async def free(self, id: str, ranks: IDset | str | None = None, *, partition: str | None = None) -> None:
        """Frees an allocation, or its part on these targets. `partition` is that of the allocation; without it, a
        connection with one acquisition means its own partition, and one with several gets EINVAL. ENOENT: there is no
        such allocation, an operator may have freed it. EPERM: the allocation is of another partition, and `ranks` is
        missing or has targets that this connection has not acquired."""
        await self.call("resource.free", Freed(id, ranks, partition).payload())

    async def free_all(
        self, frees: Iterable[Freed | str], *, partition: str | None = None, repeat: bool = False
    ) -> None:
        """Frees all of these allocations or none. `partition` is the partition of those that are given by id alone;
        `repeat` is that of alloc_all()."""
        named = [freed if isinstance(freed, Freed) else Freed(freed, partition=partition) for freed in frees]
        await self.call(
            "resource.free", {"free": [freed.payload() for freed in named]} | ({"repeat": True} if repeat else {})
        )

    async def alloc_update(
        self,
        id: str,
        *,
        partition: str | None = None,
        expiration: float | None = None,
        note: str | None = None,
        add: ResourcesLike | None = None,
        repeat: bool = False,
    ) -> None:
        """Changes the expiration (0: none) or the note ("": none) of an allocation, or adds resources to it. `partition`
        is the one in which it was made. An operator may change any allocation, but adds no resources. With `repeat`,
        resources that the allocation has already count as added."""
        given = {"partition": partition, "expiration": expiration, "note": note, "repeat": repeat or None}
        payload = {"id": id} | {key: value for key, value in given.items() if value is not None}
        await self.call("resource.alloc-update", payload | ({} if add is None else {"add": ResourceSet(add).to_dict()}))

    async def allocations(
        self, targets: str | IDset | Hostlist | None = None, *, partition: str | None = None
    ) -> list[Allocation]:
        """Returns all allocations by partition and id, or only those on some targets, or only those that were made in a
        partition ("": in none)."""
        named = {"targets": None if targets is None else str(targets), "partition": partition}
        wanted = {key: value for key, value in named.items() if value is not None}
        found: list[Allocation] = []
        while True:
            payload = await self.call("resource.allocations", wanted)
            try:
                found += [Allocation.read(one) for one in member(payload, "allocations", list)]
            except ValueError as error:
                raise _malformed("resource.allocations", error) from None
            if not isinstance(after := payload.get("next"), str) or after == wanted.get("after"):
                return found
            wanted["after"] = after

    # Operators

    async def force_free(self, id: str, ranks: IDset | str | None = None, *, partition: str | None = None) -> None:
        """Frees an allocation of any scheduler. EINVAL: there are partitions, and `partition` is not given; the error
        lists those that have the id."""
        await self.call("resource.force-free", Freed(id, ranks, partition).payload())

    async def drain(
        self,
        targets: str | IDset | Hostlist,
        reason: str | None = None,
        *,
        mode: DrainMode | None = None,
        begin: float | None = None,
        until: float | None = None,
        ticket: str | None = None,
    ) -> None:
        """Takes targets out of service, now or from `begin` on, for good or `until` a time. `ticket` is the site's
        ticket for this work. Without a `mode` EEXIST refuses targets that are drained with a reason already."""
        optional = {"reason": reason, "mode": mode, "from": begin, "until": until, "ticket": ticket}
        given = {key: value for key, value in optional.items() if value is not None}
        await self.call("resource.drain", {"targets": str(targets), **given})

    async def undrain(self, targets: str | IDset | Hostlist, *, mode: DrainMode | None = None) -> None:
        """Returns targets to service; with a mode, targets that are not drained are ignored."""
        await self.call("resource.undrain", {"targets": str(targets)} | ({"mode": mode} if mode else {}))

    async def cancel_drain(self, targets: str | IDset | Hostlist, begin: float | None = None) -> None:
        """Cancels the scheduled drains of targets that begin at `begin`, or within the second after it, or all. Drains
        that have begun stay."""
        given = {} if begin is None else {"from": begin}
        await self.call("resource.drain-cancel", {"targets": str(targets), **given})

    async def wait(
        self, targets: str | IDset | Hostlist, condition: WaitCondition = "idle", *, assume_idle: bool = False
    ) -> None:
        """Waits until all targets are in this condition, also over restarts of the daemon, and while it is a standby.
        EHOSTUNREACH: no scheduler reports the allocations of a target. With `assume_idle` such a target counts as idle
        if the ledger has no allocation of it."""
        payload = {"targets": str(targets), "for": condition}
        if assume_idle:
            payload["unreported"] = "idle"
        pause = _FIRST_PAUSE
        while True:
            try:
                await self.call("resource.wait", payload, timeout=float("inf"), wait_for_daemon=True)
                return
            except ResourcedError as error:
                passes = error.errno in ((errno.ECONNRESET,) if error.local else (errno.ECANCELED, errno.EAGAIN))
                if not passes and not is_standby_refusal(error):
                    raise
            # Wait for unreported targets, because the next daemon may start before the schedulers reconnect.
            payload.setdefault("unreported", "wait")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def add_property(self, name: str, targets: str | IDset | Hostlist) -> None:
        await self._change_property("add", name, targets)

    async def remove_property(self, name: str, targets: str | IDset | Hostlist) -> None:
        """Removes a property. ENOENT: no target has it."""
        await self._change_property("remove", name, targets)

    async def _change_property(self, op: Literal["add", "remove"], name: str, targets: str | IDset | Hostlist) -> None:
        await self.call("resource.property", {"op": op, "name": name, "targets": str(targets)})

    async def evict(self, holder: Peer, reason: str | None = None) -> None:
        """Ends the hold of a scheduler, one of the `holders` of peers(), which is told the reason. ESTALE: another
        scheduler has the resources by now, or the same one has acquired them again; ENOENT: none has them."""
        given = {"partition": holder.partition or None, "since": holder.since, "reason": reason}
        await self.call("resource.evict", {key: value for key, value in given.items() if value is not None})

    # Everybody

    async def peers(self) -> Peers:
        """The schedulers that have resources, in the order in which they acquired them, and those that wait."""
        topic = "resource.peers"
        payload = await self.call(topic)
        try:
            holders = [_read_peer(one) for one in member(payload, "holders", list)]
            waiting = [_read_peer(one) for one in entries(payload, "waiting")]
            return Peers(holders, waiting, IDset(member(payload, "agents", str)))
        except ValueError as error:
            raise _malformed(topic, error) from None

    async def status(self) -> Status:
        topic = "resource.status"
        payload = await self.call(topic)
        try:
            drains = []
            for ranks, one in member(payload, "drain", dict).items():
                until = member(one, "until", float) if "until" in one else None
                ticket = member(one, "ticket", str) if "ticket" in one else None
                times = member(one, "timestamp", float), member(one, "reason", str), until
                drains.append(Drain(IDset(ranks), *times, ticket))
            online, offline, excluded, torpid, allocated = (
                IDset(member(payload, key, str)) for key in ("online", "offline", "exclude", "torpid", "allocated")
            )
            drained = IDset().union(*(one.ranks for one in drains))
            resources = ResourceSet(payload.get("R", ""))
        except ValueError as error:
            raise _malformed(topic, error) from None
        return Status(resources, drains, drained, online, offline, excluded, torpid, allocated, payload)

    async def sched_status(self) -> SchedStatus:
        topic = "resource.sched-status"
        payload = await self.call(topic)
        try:
            every, down, allocated = (ResourceSet(member(payload, key, dict)) for key in ("all", "down", "allocated"))
            reported = IDset(member(payload, "reported", str)) if "reported" in payload else None
        except ValueError as error:
            raise _malformed(topic, error) from None
        return SchedStatus(every, down, allocated, reported)

    async def report(
        self, since: float, until: float | None = None, *, by: ReportGroups | None = None, limit: int | None = None
    ) -> Report:
        """Returns how long targets were in each state from `since` to `until` (default: now), in total and for each
        group. ENODATA: nothing is known of that time."""
        optional = {"until": until, "by": by, "limit": limit}
        given = {key: value for key, value in optional.items() if value is not None}
        payload = await self.call("resource.report", {"since": since, **given})
        try:
            return read_report(payload)
        except ValueError as error:
            raise _malformed("resource.report", error) from None

    def journal(
        self,
        *,
        after: int | None = None,
        since: float | None = None,
        targets: str | None = None,
        allocations: bool = False,
        own: bool = False,
        follow_restart: bool = False,
    ) -> Journal:
        """The events of the resources: those of the past that are kept, then new ones. With `after` only events after the
        one with this number, 0 for all; with `since` only events at or after this time; with `targets` only events of
        these; with `allocations` also the records of the ledger, with `own` also `evict`. After a clean shutdown of the
        daemon the journal ends; with `follow_restart` it waits for the next daemon."""
        given = {"since": since, "targets": targets, "allocations": allocations or None, "own": own or None}
        return Journal(self, given, after=after, follow_restart=follow_restart)


#: Makes a connection for `async with`, which connects and closes it.
connect = Connection


def _read_peer(one: Any) -> Peer:
    since, by = member(one, "since", float), None
    if "by" in one:
        [(kind, name)] = member(one, "by", dict).items()
        by = f"{'uid' if kind == 'userid' else kind} {name}"
    return Peer(
        member(one, "partition", str) if "partition" in one else "",
        since,
        by,
        IDset(member(one, "targets", str)) if "targets" in one else IDset(),
        one.get("allocations") is True,
        member(one, "kept-until", float) if "kept-until" in one else None,
    )


def _malformed(topic: str, error: ValueError) -> ResourcedError:
    return ResourcedError(errno.EPROTO, f"{topic}: {error}", local=True)
