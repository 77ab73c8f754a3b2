"""The daemons of a cluster: the search for the leader.

All daemons are asked (`resource.leader`), each over a link of its own, repeatedly with growing pauses, until one
answers that it leads. If one leads another cluster, or is in none, the search fails: each change would go to one of the
two at random. So after the first answer the search waits a moment for the others, unless it is of the cluster of the
last leader.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from resourced._link import Failure, Link, Owner
from resourced._message import Response, request_parts
from resourced._reachability import explain
from resourced._repeats import DOES_NOT_LEAD
from resourced.address import Endpoint, Keys
from resourced.errors import ResourcedError

#: Number of parts of the time of an attempt. Each part ends in a turn of the loop, so that a program that was busy
#: meanwhile still reads the answer.
_PARTS = 10
#: The time that other endpoints have to answer once one leads: running daemons answer within it, and a host that is
#: down, or a slow look-up of a name, delays nothing for longer.
_TIME_OF_OTHERS = 0.25


class Patience:
    """Calls `over` after some seconds, unless it ends earlier."""

    def __init__(self, seconds: float, over: Callable[[], None]) -> None:
        self._part, self._over = seconds / _PARTS, over
        self._timer: asyncio.TimerHandle | None = None
        self._pass(_PARTS)

    def end(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _pass(self, parts: int) -> None:
        if parts:
            self._timer = asyncio.get_running_loop().call_later(self._part, self._pass, parts - 1)
        else:
            self._over()


class LastLeader:
    """The last leader that was followed. No leader of a lower epoch of the same cluster is followed after it. A cluster
    that is created again has another id, and counts its epochs from a low one again."""

    def __init__(self) -> None:
        self._cluster: str | None = None
        self._epoch = 0

    @property
    def cluster(self) -> str | None:
        return self._cluster

    def allows(self, answer: Mapping[str, Any]) -> bool:
        """Whether a daemon with this answer, to `resource.leader` or an acquire, may be followed."""
        cluster, epoch = answer.get("cluster"), answer.get("epoch", 0)
        if not isinstance(cluster, str | None) or not isinstance(epoch, int) or isinstance(epoch, bool):
            return False
        is_new = cluster is not None and self._cluster is not None and cluster != self._cluster
        return epoch >= self._epoch or is_new

    def become(self, answer: Mapping[str, Any]) -> None:
        """Records the daemon with this answer, which allows() accepts, as the leader that is followed."""
        self._cluster, self._epoch = answer.get("cluster") or self._cluster, answer.get("epoch", 0)


@dataclass(frozen=True)
class _Claim:
    """The answer of a leader."""

    answer: Mapping[str, Any]
    #: Whether its version knows the question.
    is_known: bool

    @property
    def epoch(self) -> int:
        return int(self.answer.get("epoch", 0))

    @property
    def cluster(self) -> str | None:
        return self.answer.get("cluster") or None

    @property
    def standing(self) -> str | None:
        """Returns a description of the daemon's cluster for an error; None if it is unknown."""
        if self.is_known and "epoch" not in self.answer:
            return "is in no cluster"
        return f"leads cluster {self.cluster}" if self.cluster else None

    def is_of_one_with(self, other: _Claim) -> bool:
        if self.standing is None or other.standing is None:
            return True
        return self.cluster is not None and self.cluster == other.cluster


class _Place:
    """A daemon that may lead. When it does, the owner gets its link."""

    def __init__(self, search: LeaderSearch, endpoint: Endpoint, pause: float) -> None:
        self.endpoint = endpoint
        self.pause = pause
        self.link: Link | None = None
        self.refusal: Failure | None = None
        #: Why the daemon does not lead, as it has answered; empty if it has not.
        self.reason = ""
        #: Whether the daemon has answered in this search, or cannot be asked now.
        self.is_known = False
        self.claim: _Claim | None = None
        self.patience: Patience | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.owner: Owner | None = None
        self._search = search

    def link_connected(self) -> None:
        self._search.ask(self)

    def link_failed(self, failure: Failure) -> None:
        self._search.fail(self, failure)

    def link_lost(self) -> None:
        self.owner.link_lost() if self.owner else self._search.fail(self, Failure.ENDED)

    def link_response(self, response: Response) -> None:
        self.owner.link_response(response) if self.owner else self._search.take(self, response)

    def link_room(self) -> None:
        if self.owner:
            self.owner.link_room()

    def stop(self) -> None:
        if self.patience:
            self.patience.end()
        if self.timer:
            self.timer.cancel()


class LeaderSearch:
    """A search for the leader. `make` makes a link to an endpoint. At the end one of two functions is called: `found` with
    the link to the leader, whose messages go to `owner`, or `refused`, if every endpoint refuses this client in a way that
    does not change by itself, or two lead different clusters. `longest` is the time of the search."""

    def __init__(
        self,
        places: Iterable[Endpoint],
        last: LastLeader,
        owner: Owner,
        make: Callable[[Owner, Endpoint], Link],
        found: Callable[[Link], None],
        refused: Callable[[], None],
        *,
        attempt: float,
        longest: float,
        pauses: tuple[float, float],
    ) -> None:
        self._last, self._owner, self._make, self._found, self._refused = last, owner, make, found, refused
        self._attempt = attempt
        self._time_of_others = min(_TIME_OF_OTHERS, longest / 2)
        self._others: Patience | None = None
        self._are_others_late = False
        self._longest_pause = pauses[1]
        self._places = [_Place(self, endpoint, pauses[0]) for endpoint in places]
        for place in self._places:
            self._connect(place)

    def close(self) -> None:
        if self._others:
            self._others.end()
        for place in self._places:
            place.stop()
            if place.link:
                place.link.close(0)

    async def why(self, keys: Keys | None) -> ResourcedError:
        """Returns the error about two endpoints that lead different clusters; or `cannot reach the daemon at URI: WHY`,
        with the reason of an endpoint that refuses this client, if one does."""
        if conflict := self._conflict():
            return conflict
        silent = [place for place in self._places if not place.is_known]
        if self._best() and silent:
            return await explain(Failure.TIMED_OUT, silent[0].endpoint, keys)
        for place in self._places:
            if place.refusal:
                return await explain(place.refusal, place.endpoint, keys)
        error = none_leads(place.endpoint for place in self._places)
        if not any(place.reason for place in self._places):
            return error
        reasons = "; ".join(f"{place.endpoint.uri}: {place.reason or 'no answer'}" for place in self._places)
        return ResourcedError(errno.EHOSTUNREACH, f"{error.text}: {reasons}", local=True)

    # Functions for one endpoint

    def ask(self, place: _Place) -> None:
        assert place.link
        if place.link.send(request_parts("resource.leader", None, 1, 0)):
            self._await(place)
        else:
            self.fail(place, Failure.TIMED_OUT)

    def fail(self, place: _Place, failure: Failure) -> None:
        if place.link:
            place.link.close(0)
        place.link = place.claim = None
        place.reason = ""
        place.is_known = True
        place.refusal = failure if failure.is_final else None
        if all(one.refusal for one in self._places):
            self.close()
            self._refused()
        else:
            self._pause(place)
            self._settle()

    def take(self, place: _Place, response: Response) -> None:
        place.refusal = None
        if response.errnum == errno.EBUSY:
            return self._pause(place)  # the daemon is too busy to answer
        place.is_known = True
        place.reason = ""
        if response.errnum == errno.EHOSTUNREACH:
            place.reason = response.error().text.removeprefix(DOES_NOT_LEAD)
        place.claim = self._claim(response)
        if not place.claim:
            self._pause(place)
        else:
            place.stop()
            self._others = self._others or Patience(self._time_of_others, self._go_on_without_others)
        self._settle()

    def _claim(self, response: Response) -> _Claim | None:
        if response.errnum == errno.EHOSTUNREACH:
            return None
        answer: Mapping[str, Any] = {}
        if not response.errnum:
            try:
                answer = response.payload()
            except ResourcedError:
                return None
        # Other errors come from a leader whose version does not know the question.
        return _Claim(answer, not response.errnum) if self._last.allows(answer) else None

    def _go_on_without_others(self) -> None:
        self._are_others_late = True
        self._settle()

    def _settle(self) -> None:
        """Ends the search if an endpoint leads, and the answers of the others have arrived or are not needed."""
        best = self._best()
        if not best or not best.claim:
            return
        is_of_last = best.claim.cluster is not None and best.claim.cluster == self._last.cluster
        if self._conflict():
            self.close()
            self._refused()
        elif self._are_others_late or is_of_last or all(place.is_known for place in self._places):
            self._places.remove(best)
            best.stop()
            self.close()
            self._last.become(best.claim.answer)
            link, best.owner = best.link, self._owner
            assert link
            self._found(link)

    def _best(self) -> _Place | None:
        """Returns, of those that lead, the endpoint of the highest epoch."""
        leaders = [(place.claim.epoch, -i, place) for i, place in enumerate(self._places) if place.claim]
        return max(leaders)[2] if leaders else None

    def _conflict(self) -> ResourcedError | None:
        """Returns the error about two endpoints that do not lead the same cluster, if their answers show this."""
        for one, other in itertools.combinations(self._places, 2):
            if one.endpoint == other.endpoint or not one.claim or not other.claim or one.claim.is_of_one_with(other.claim):
                continue
            told = ", ".join(f"{place.endpoint.uri} {place.claim.standing}" for place in (one, other) if place.claim)
            return ResourcedError(errno.EINVAL, f"these daemons are not of one cluster: {told}: give the URIs of one cluster "
                                  "alone, or make [cluster] the same in the files of both", local=True)
        return None

    def _connect(self, place: _Place) -> None:
        try:
            place.link = self._make(place, place.endpoint)
        except ResourcedError:
            return self._pause(place)  # no descriptors left, for example
        self._await(place)

    def _await(self, place: _Place) -> None:
        place.stop()
        place.patience = Patience(self._attempt, lambda: self.fail(place, Failure.TIMED_OUT))

    def _pause(self, place: _Place) -> None:
        place.stop()
        place.timer = asyncio.get_running_loop().call_later(place.pause, self._go_on, place)
        place.pause = min(2 * place.pause, self._longest_pause)

    def _go_on(self, place: _Place) -> None:
        self.ask(place) if place.link else self._connect(place)


def none_leads(places: Iterable[Endpoint]) -> ResourcedError:
    uris = ",".join(place.uri for place in places)
    return ResourcedError(
        errno.EHOSTUNREACH, f"cannot reach the daemon at {uris}: none of them leads the cluster", local=True
    )
