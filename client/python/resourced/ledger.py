"""The ledger of allocations as a scheduler knows it, and its own changes, which survive lost answers."""

from __future__ import annotations

import asyncio
import copy
import errno
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from resourced._json import member
from resourced._message import Response, encode_payload
from resourced._requests import Request, awaited
from resourced.allocations import Allocation, Freed
from resourced.errors import ResourcedError
from resourced.hostlist import Hostlist
from resourced.idset import IDset
from resourced.resource_set import ResourceSet, ResourcesLike
from resourced.rpc import RpcConnection

#: The partition in which an allocation was made, and its id.
Name: TypeAlias = tuple[str, str]
_Names: TypeAlias = list[Name]
_Changes: TypeAlias = list["_Change"]
_Targets: TypeAlias = tuple[IDset, Hostlist]
#: How long to wait while the daemon cannot carry out changes.
_PAUSE = 0.5
#: How many absent hosts of an allocation are looked at.
_MOST_ABSENT = 1 << 20


@dataclass(frozen=True)
class Entry:
    allocation: Allocation
    #: The number of the event up to which this is true.
    sequence: int


@dataclass(eq=False)
class _Change:
    topic: str
    payload: dict[str, Any]
    names: _Names
    #: Applies the change to the list of a ledger, as of an event.
    apply: Callable[[Ledger, int], None]
    #: The resources that it gives to allocations, and the parts that it frees.
    given: list[ResourceSet] = field(default_factory=list)
    parts: list[Freed] = field(default_factory=list)
    #: The request, from when it is sent until its loss.
    request: _Request | None = None
    is_unknown: bool = False
    #: The answer: a refusal, or None.
    answer: asyncio.Future[ResourcedError | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Ledger:
    """The ledger of an acquisition: `Acquisition.ledger`. A change gets one answer. If the connection is lost before, the
    change may have been made or not: it is sent again, with `repeat`, once the acquisition is held again. A change that is
    requested while nothing is held is sent at that time, too. If it names targets that have other ranks by then, or are
    not in the acquisition any more, it is not sent: it has succeeded if the list shows what it does, and else it fails
    with ESTALE, and may be requested again with the present ranks. A change that the daemon cannot carry out now (EAGAIN,
    or EHOSTUNREACH of one that does not lead) is sent again after half a second. Cancelling change() or update() does not
    end the change."""

    def __init__(self, acquisition: object, connection: RpcConnection, partition: str) -> None:
        self._acquisition = weakref.ref(acquisition)
        self._connection = connection
        self._partition = partition
        self._list: dict[Name, Entry] = {}
        #: The changes without an answer, in their order.
        self._changes: list[_Change] = []
        #: For each allocation in these changes, the number of the last event by somebody else that is known.
        self._open: dict[Name, int] = {}
        self._is_held = False
        #: The targets of the acquisition when it was held last.
        self._targets: _Targets | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._end: ResourcedError | None = None
        connection._ledgers.add(self)

    @property
    def _others(self) -> Iterable[Ledger]:
        """The other ledgers of the connection."""
        return [one for one in self._connection._ledgers if one is not self and not one._end]

    def list(self) -> dict[Name, Entry]:
        """The allocations on the targets of the acquisition and of its partition, by partition and id, as of the last
        response that was received. While the acquisition is lost it stays as it was."""
        return {name: self._list[name] for name in sorted(self._list)}

    def pending(self) -> _Names:
        """Returns the names of the allocations in changes without an answer that were sent, or will be."""
        return [name for change in self._changes if not change.is_unknown for name in change.names]

    def unknown(self) -> _Names:
        """Returns the names of the allocations in changes whose answer was lost, and which will be sent again."""
        return [name for change in self._changes if change.is_unknown for name in change.names]

    def resync(self) -> None:
        """Sends the changes of unknown() again. The acquisition does so by itself whenever it is held again."""
        for change in self._changes if self._is_held else ():
            if not change.request:
                self._send(change)

    async def change(self, allocations: Iterable[Allocation] = (), *, frees: Iterable[Freed | str] = ()) -> None:
        """Frees allocations, in the partition of the acquisition if none is named, then records others, always in the
        partition of the acquisition: all of it or nothing. Raises the daemon's errors of Connection.alloc() and free();
        EALREADY if a change of the same allocation has no answer yet; EINVAL if an allocation that is freed is of the
        partition of another ledger of this connection, which has to free it; a local EPROTO for an answer that cannot be
        read; and the error with which the acquisition has ended: then the change may have been made."""
        gone = [one if isinstance(one, Freed) else Freed(one) for one in frees]
        gone = [one if one.partition is not None else replace(one, partition=self._partition) for one in gone]
        # The daemon takes 0 and "" for none, and so does the list.
        made = [
            replace(one, partition=self._partition, expiration=one.expiration or None, note=one.note or None)
            for one in allocations
        ]
        payload: dict[str, Any] = {"free": [one.payload() for one in gone]}
        if made:
            # Without the partition the daemon would take that of the acquisition that has the targets.
            payload["allocations"] = [one.payload() | {"partition": one.partition} for one in made]

        def apply(ledger: Ledger, sequence: int) -> None:
            for freed in gone:
                ledger._remove(freed, sequence)
            for allocation in made if ledger is self else ():
                ledger._put(allocation, sequence)

        freed_names = ((one.partition or "", one.id) for one in gone)
        names = list(dict.fromkeys([*freed_names, *((one.partition, one.id) for one in made)]))
        change = _Change("resource.alloc" if made else "resource.free", payload, names, apply)
        change.given = [one.resources for one in made]
        change.parts = [one for one in gone if one.ranks is not None]
        await self._carry_out(change)

    async def update(
        self,
        id: str,
        *,
        partition: str | None = None,
        expiration: float | None = None,
        note: str | None = None,
        add: ResourcesLike | None = None,
    ) -> None:
        """Changes an allocation as Connection.alloc_update() does, with the errors of change(). The list does not have
        `nslots` of an allocation to which resources were added."""
        name = self._partition if partition is None else partition, id
        more = None if add is None else ResourceSet(add)
        given = {"expiration": expiration, "note": note, "add": more.to_dict() if more else None}
        payload = {"id": id, "partition": name[0]} | {key: value for key, value in given.items() if value is not None}

        def apply(ledger: Ledger, sequence: int) -> None:
            if name in ledger._list and ledger._is_news(name, sequence):
                one = ledger._list[name].allocation
                if more:  # after a repetition the list may have it already
                    one = replace(one, resources=one.resources | (more - one.resources))
                if expiration is not None:
                    one = replace(one, expiration=expiration or None, expired=False)
                if note is not None:
                    one = replace(one, note=note or None)
                ledger._list[name] = Entry(one, sequence)

        await self._carry_out(_Change("resource.alloc-update", payload, [name], apply, [more] if more else []))

    async def _carry_out(self, change: _Change) -> None:
        if self._end:
            raise copy.copy(self._end)  # each task adds its own traceback
        theirs = {other._partition for other in self._others} - {self._partition}
        for partition, id in (name for name in change.names if name[0] in theirs):
            what = f"partition {partition} has a ledger of its" if partition else "the targets in no partition have a ledger of their"
            text = f"allocation {id}: {what} own on this connection: change it there"
            raise ResourcedError(errno.EINVAL, text, local=True)
        for _, id in (name for name in change.names if name in self._open):
            text = f"allocation {id}: wait for the answer to an earlier change"
            raise ResourcedError(errno.EALREADY, text, local=True)
        encode_payload(change.payload)  # raises ValueError for text that could not be sent later
        self._connection._check_open(change.topic)
        self._changes.append(change)
        self._open |= dict.fromkeys(change.names, 0)
        with awaited((self, self._acquisition())):
            try:
                await self._connection._catch_up()
            finally:
                if self._is_held and not change.request:
                    self._send(change)
            error = await asyncio.shield(change.answer)
        if error:
            raise error

    def _send(self, change: _Change) -> None:
        request = _Request(self, change)
        self._connection.submit(request)  # if this raises, the next resync() sends the change
        change.request, change.is_unknown = request, False

    def _receive(self, change: _Change, response: Response) -> None:
        try:
            sequence = read_sequence(response.payload())
            change.apply(self, sequence)
            for other in self._others:  # the daemon tells a connection only what others do
                if other._is_held:
                    change.apply(other, sequence)
        except ValueError as error:
            self._settle(change, ResourcedError(errno.EPROTO, f"{change.topic}: {error}", local=True))
        except ResourcedError as error:
            self._settle(change, error)
        else:
            self._settle(change)

    def _fail(self, change: _Change, error: ResourcedError) -> None:
        if error.errno not in (errno.EAGAIN, errno.EHOSTUNREACH):
            return self._settle(change, error)
        change.request = None
        self._pause = self._pause or asyncio.get_running_loop().call_later(_PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self.resync()

    def _settle(self, change: _Change, error: ResourcedError | None = None) -> None:
        self._changes.remove(change)
        for name in change.names:
            del self._open[name]
        change.answer.set_result(error)

    # For the acquisition

    def _begin(self, present: Iterable[Allocation], targets: ResourceSet, sequence: int) -> None:
        now = targets.ranks, targets.nodelist
        moved = self._moved(self._targets, now) if self._targets and self._targets != now else []
        self._targets = now
        possible = [change for change in moved if self._applies(change)]
        expected = self._list
        self._list = {(one.partition, one.id): Entry(one, sequence) for one in present}
        for change in moved:
            made = change in possible and all(_is_same(expected.get(name), self._list.get(name)) for name in change.names)
            text = "its targets have other ranks than when it was asked for, or are not in the acquisition"
            error = ResourcedError(errno.ESTALE, f"allocation {change.names[0][1]}: {text}")
            self._settle(change, None if made else error)
        self._open = dict.fromkeys(self._open, sequence)
        self._is_held = True
        self.resync()

    def _moved(self, former: _Targets, now: _Targets) -> _Changes:
        """The changes that name ranks which are those of other targets now, or of none."""
        before, after = _ranks_by_host(*former), _ranks_by_host(*now)
        hosts, former_hosts = dict(zip(*now, strict=True)), dict(zip(*former, strict=True))

        def is_moved(rank: int, host: str) -> bool:
            return hosts.get(rank, host) != host or (host in before and before[host] != after.get(host))

        def named(change: _Change) -> Iterable[tuple[int, str]]:
            for given in change.given:
                yield from zip(given.ranks, given.nodelist, strict=True)
            for part in change.parts:
                ranks = IDset(part.ranks or "")
                yield from ((rank, former_hosts[rank]) for rank in ranks if rank in former_hosts)
                if entry := self._list.get((part.partition or "", part.id)):
                    held = entry.allocation.resources
                    yield from ((rank, host) for rank, host in zip(held.ranks, held.nodelist, strict=True) if rank in ranks)

        return [change for change in self._changes if any(is_moved(*pair) for pair in named(change))]

    def _applies(self, change: _Change) -> bool:
        """Applies a change to the list, if it is possible: the daemon would have refused another one."""
        try:
            change.apply(self, sys.maxsize)
        except ValueError:
            return False
        return True

    def _forget(self, shrunk: IDset) -> None:
        """Targets have left for good."""
        if self._targets and shrunk:
            left = [(rank, host) for rank, host in zip(*self._targets, strict=True) if rank not in shrunk]
            self._targets = IDset([rank for rank, _ in left]), Hostlist([host for _, host in left])

    def _take(self, freed: Iterable[Freed], changed: Iterable[Allocation], expired: Iterable[Name], sequence: int) -> None:
        """Applies the changes that others have made."""
        for gone in freed:
            self._remove(gone, sequence)
        for one in changed:
            self._put(one, sequence)
        for name in expired:
            if name in self._list and self._is_news(name, sequence):
                self._list[name] = Entry(replace(self._list[name].allocation, expired=True), sequence)

    def _leave(self, end: ResourcedError | None = None) -> None:
        """The acquisition is not held any more; with `end` it never will be again."""
        self._is_held, self._end = False, end
        for change in [*self._changes]:
            if change.request:
                # A connection to a cluster would send a refused change again, and before the next acquire.
                self._connection.cancel(change.request)
                change.request, change.is_unknown, change.payload["repeat"] = None, True, True
            if end:
                self._settle(change, copy.copy(end))

    def _is_news(self, name: Name, sequence: int) -> bool:
        """Whether nothing newer is known about an allocation."""
        known = self._list.get(name)
        newest = self._open.get(name, 0)
        if name in self._open:  # an answer on its way may be older than this, also where the allocation is gone
            self._open[name] = max(newest, sequence)
        return sequence >= newest and not (known and known.sequence > sequence)

    def _put(self, allocation: Allocation, sequence: int) -> None:
        name = allocation.partition, allocation.id
        if self._is_news(name, sequence):
            self._list[name] = Entry(allocation, sequence)

    def _remove(self, freed: Freed, sequence: int) -> None:
        name = freed.partition or "", freed.id
        if not self._is_news(name, sequence) or name not in self._list:
            return
        rest = self._list.pop(name).allocation
        if freed.ranks is not None:
            rest = rest.without(IDset(freed.ranks))
            if rest.resources or rest.absent:
                self._list[name] = Entry(rest, sequence)


class _Request(Request):
    """A request for a change, until the change is answered or sent again."""

    def __init__(self, ledger: Ledger, change: _Change) -> None:
        super().__init__(change.topic, change.payload)
        self._ledger, self._change = weakref.ref(ledger), change

    @property
    def _receiver(self) -> Ledger | None:
        return self._ledger() if self._change.request is self and not self._change.answer.done() else None

    def receive(self, response: Response) -> None:
        if ledger := self._receiver:
            ledger._receive(self._change, response)

    def fail(self, error: ResourcedError) -> None:
        if ledger := self._receiver:
            ledger._fail(self._change, error)


def _ranks_by_host(ranks: IDset, hosts: Hostlist) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for rank, host in zip(ranks, hosts, strict=True):
        found.setdefault(host, []).append(rank)
    return found


def _is_same(a: Entry | None, b: Entry | None) -> bool:
    """Whether two allocations have the same hosts and terms, and the same cores and gpus of each host, whatever its rank
    is. The daemon does not list what an allocation has of an absent host, so that is not compared."""
    if not a or not b:
        return a is b
    one, other = a.allocation, b.allocation
    if (one.expiration, one.note) != (other.expiration, other.note):
        return False
    try:
        absent = Hostlist(one.absent), Hostlist(other.absent)
    except ValueError:
        return False  # it proves nothing
    if max(map(len, absent)) > _MOST_ABSENT:
        return False

    def parts(allocation: Allocation, absent: Hostlist) -> dict[str, Any]:
        resources = allocation.resources
        of = lambda rank: (resources.cores(rank), resources.gpus(rank))
        ranks = _ranks_by_host(resources.ranks, resources.nodelist)
        return {host: [*map(of, ranks[host])] for host in ranks} | dict.fromkeys(absent)

    of_one, of_other = parts(one, absent[0]), parts(other, absent[1])
    known = of_one.keys() - {*absent[0], *absent[1]}
    return of_one.keys() == of_other.keys() and all(of_one[host] == of_other[host] for host in known)


def read_sequence(payload: Mapping[str, Any]) -> int:
    """Returns the number of the event up to which a response is true; 0 if it has none. Raises ValueError."""
    sequence: int = member(payload, "sequence", int) if "sequence" in payload else 0
    return sequence
