"""The daemons of a cluster: the search for the one that leads, and which requests its successor gets again.

All are asked at once (`resource.leader`), each over a link of its own, again and again with growing pauses, until one
answers that it leads.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from resourced._link import Failure, Link, Owner, explain
from resourced._message import Response, request_parts
from resourced._requests import Request
from resourced.address import Endpoint, Keys
from resourced.errors import ResourcedError

#: Requests that change nothing and have one response. Not resource.wait: its sender asks for something else after a loss.
_QUESTIONS = frozenset((
    "resource.allocations", "resource.peers", "feasibility.check", "resource.status", "resource.status-at",
    "resource.report", "resource.sched-status", "resource.get", "resource.stats-get", "resource.ready",
    "resource.metrics", "resource.cluster", "resource.ping", "config.get", "attr.get", "resource.user-names",
))
#: Requests by which an operator or a scheduler changes the state.
_CHANGES = frozenset((
    "resource.drain", "resource.undrain", "resource.property", "resource.expiration", "resource.expiration-update",
    "resource.shrink", "resource.unshrink", "resource.alloc", "resource.free", "resource.force-free",
))
#: A question that ends the daemon must not go through all of the cluster.
_MOST_LOSSES = 2
#: The error text of a daemon that shuts down in good order.
UNLOADED = "the resource module was unloaded"
#: The parts of the time of an attempt. Each passes with a turn of the loop, so that a program that was busy meanwhile
#: still reads the answer.
_PARTS = 10


class Patience:
    """Calls `over` after some seconds, unless it is ended before."""

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
    """The last leader that was followed: none of a lower epoch of the same cluster is. A cluster that is begun anew has
    another id, and counts its epochs anew."""

    def __init__(self) -> None:
        self._cluster: str | None = None
        self._epoch = 0

    def may_be_followed_by(self, answer: Mapping[str, Any]) -> bool:
        """Whether a daemon with this answer, to `resource.leader` or an acquire, may be followed. If so, it is the last."""
        cluster, epoch = answer.get("cluster"), answer.get("epoch", 0)
        if not isinstance(cluster, str | None) or not isinstance(epoch, int) or isinstance(epoch, bool):
            return False
        is_new = cluster is not None and self._cluster is not None and cluster != self._cluster
        if epoch < self._epoch and not is_new:
            return False
        self._cluster, self._epoch = cluster or self._cluster, epoch
        return True


class _Place:
    """A daemon that may lead. Once it does, its link is that of the owner."""

    def __init__(self, search: LeaderSearch, endpoint: Endpoint, pause: float) -> None:
        self.endpoint = endpoint
        self.pause = pause
        self.link: Link | None = None
        self.refusal: Failure | None = None
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
    """`make` makes a link to a place. Then one of two is called: `found` with the link to the leader, whose messages go
    to `owner`, or `refused`, if every place refuses this client in a way that does not change by itself."""

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
        pauses: tuple[float, float],
    ) -> None:
        self._last, self._owner, self._make, self._found, self._refused = last, owner, make, found, refused
        self._attempt = attempt
        self._longest_pause = pauses[1]
        self._places = [_Place(self, endpoint, pauses[0]) for endpoint in places]
        for place in self._places:
            self._connect(place)

    def close(self) -> None:
        for place in self._places:
            place.stop()
            if place.link:
                place.link.close(0)

    async def why(self, keys: Keys | None) -> ResourcedError:
        """`cannot reach the daemon at URI: WHY`, with the reason of a place that refuses this client, if one does."""
        for place in self._places:
            if place.refusal:
                return await explain(place.refusal, place.endpoint, keys)
        return none_leads(place.endpoint for place in self._places)

    # Of a place

    def ask(self, place: _Place) -> None:
        assert place.link
        if place.link.send(request_parts("resource.leader", None, 1, 0)):
            self._await(place)
        else:
            self.fail(place, Failure.TIMED_OUT)

    def fail(self, place: _Place, failure: Failure) -> None:
        if place.link:
            place.link.close(0)
        place.link = None
        place.refusal = failure if failure.is_final else None
        if all(one.refusal for one in self._places):
            self.close()
            self._refused()
        else:
            self._pause(place)

    def take(self, place: _Place, response: Response) -> None:
        place.refusal = None
        if self._leads(response):
            self._places.remove(place)
            place.stop()
            self.close()
            link, place.owner = place.link, self._owner
            assert link
            self._found(link)
        else:
            self._pause(place)

    def _leads(self, response: Response) -> bool:
        if response.errnum in (errno.EHOSTUNREACH, errno.EBUSY):
            return False  # a standby, and a daemon that is too busy to say
        answer: Mapping[str, Any] = {}
        if not response.errnum:
            try:
                answer = response.payload()
            except ResourcedError:
                return False
        # Other errors are of a leader whose version does not know the question.
        return self._last.may_be_followed_by(answer)

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


class Repeats:
    """Which requests the next leader gets again. A change is never sent twice, as it would mean something else after the
    changes of others, but for one that a daemon has refused without making it."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._last_sent = 0

    def sent(self, request: Request) -> None:
        self._last_sent = request.number

    def survives_loss(self, request: Request) -> bool:
        """A request that was sent, and whose connection is lost."""
        if request.topic not in _QUESTIONS or request.losses >= _MOST_LOSSES:
            return False
        request.losses += 1
        return True

    def survives_error(self, request: Request, error: ResourcedError) -> bool:
        """A request that was answered with this error."""
        if error.errno == errno.ECANCELED and error.text == UNLOADED:
            return self.survives_loss(request)
        is_of_standby = leads_no_more(request, error)
        if not is_of_standby and not (error.errno == errno.EAGAIN and request.topic in _CHANGES):
            return False
        # Changes keep their order: not if another request was sent after it.
        if request.topic not in _QUESTIONS and request.number != self._last_sent:
            return False
        now = asyncio.get_running_loop().time()
        if request.refusal is None:
            request.refused_at = now
        elif now - request.refused_at >= self._longest:
            return False
        request.refusal = error
        return True


def leads_no_more(request: Request, error: ResourcedError) -> bool:
    """Whether the error is that of a standby. EHOSTUNREACH of resource.wait is about its targets."""
    return error.errno == errno.EHOSTUNREACH and request.topic != "resource.wait"
