"""The requests that are not sent yet, and which requests of a connection to a cluster are sent again.

The rules, and the lists of topics, are those of the C++ library (client/repeatable.hpp). A change is sent again only if
a daemon has refused it without making it: otherwise the second one might arrive after other changes, and would then mean
something else. The ledger (ledger.py) sends changes whose answer was lost again, marked as repeated.
"""

from __future__ import annotations

import asyncio
import errno
import math
from collections import deque
from collections.abc import Callable, Iterable

from resourced._message import NORESPONSE
from resourced._requests import Request
from resourced.errors import ResourcedError

#: Requests that change nothing and have one response. Not resource.wait, whose sender repeats it differently after a
#: loss.
QUESTIONS = frozenset((
    "resource.allocations", "resource.peers", "feasibility.check", "resource.status", "resource.status-at",
    "resource.report", "resource.sched-status", "resource.get", "resource.stats-get", "resource.ready",
    "resource.metrics", "resource.cluster", "resource.ping", "config.get", "attr.get", "resource.user-names",
    "resource.version",
))
#: Requests that change the state.
CHANGES = frozenset((
    "resource.drain", "resource.undrain", "resource.evict", "resource.drain-cancel", "resource.property",
    "resource.expiration", "resource.expiration-update", "resource.shrink", "resource.unshrink", "resource.forget",
    "resource.alloc", "resource.alloc-update", "resource.free", "resource.force-free", "resource.reload",
    "resource.monitor-force-down",
))
#: How often a question is sent again: one that ends the daemon must not go through the whole cluster.
MOST_LOSSES = 1
#: The error text of a clean shutdown of the daemon.
UNLOADED = "the resource module was unloaded"
#: The beginning of the error text of a standby.
DOES_NOT_LEAD = "this daemon does not lead its cluster: "


def is_shut_down(error: ResourcedError) -> bool:
    """Whether a clean shutdown of the daemon has ended a request."""
    return error.errno in (errno.ECANCELED, errno.ENODATA) and error.text == UNLOADED


def is_standby_refusal(error: ResourcedError) -> bool:
    """Whether a daemon has said that it does not lead."""
    return not error.local and error.errno == errno.EHOSTUNREACH and error.text.startswith(DOES_NOT_LEAD)


def is_of_standby(topic: str, error: ResourcedError) -> bool:
    """Whether a daemon has refused a request because it does not lead. In answers to resource.wait the errno alone does not
    show that."""
    return is_standby_refusal(error) if topic == "resource.wait" else error.errno == errno.EHOSTUNREACH


class Repeats:
    """Which requests the next leader gets again."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        #: The number of the last request that was sent and is no question.
        self._last_sent = 0

    def sent(self, request: Request) -> None:
        if request.topic not in QUESTIONS:
            self._last_sent = max(self._last_sent, request.number)

    def survives_loss(self, request: Request) -> bool:
        """Handles a request that was sent, and whose answer is lost."""
        if request.topic not in QUESTIONS or not request.number or request.losses >= MOST_LOSSES:
            return False
        request.losses += 1
        return True

    def survives_error(self, request: Request, error: ResourcedError) -> bool:
        """Handles a request without a stream that was answered with this error."""
        if is_shut_down(error) and request.topic in QUESTIONS:
            return self.survives_loss(request)
        if not is_of_standby(request.topic, error) and not cannot_commit(request, error):
            return False
        # Changes keep their order: do not repeat one if another request than a question was sent after it.
        if not request.number or (request.topic not in QUESTIONS and request.number != self._last_sent):
            return False
        now = asyncio.get_running_loop().time()
        if request.refusal is None:
            request.refused_at = now
        elif math.isinf(request.timeout) and now - request.refused_at >= self._longest:
            return False
        request.refusal = error
        return True


def cannot_commit(request: Request, error: ResourcedError) -> bool:
    """Whether the leader cannot make a change at present."""
    return error.errno == errno.EAGAIN and request.topic in CHANGES


class Outgoing:
    """The requests and notices that are not sent yet. During a hold only questions and notices are ready, as the daemon
    cannot make changes at present."""

    def __init__(self) -> None:
        self._ready: deque[Request] = deque()
        self._held: deque[Request] = deque()
        self._is_held = False

    def __len__(self) -> int:
        return len(self._ready) + len(self._held)

    @property
    def first(self) -> Request | None:
        """The request or notice that is to be sent next; None if none is ready."""
        return self._ready[0] if self._ready else None

    @property
    def refusal(self) -> ResourcedError | None:
        """The refusal of the first request that is held back; None if there is none."""
        return self._held[0].refusal if self._held else None

    def pop(self) -> None:
        """Removes the first request or notice."""
        self._ready.popleft()

    def put(self, request: Request) -> None:
        (self._held if self._waits(request) else self._ready).append(request)

    def put_back(self, requests: Iterable[Request]) -> None:
        """Puts requests that were sent to their place in the order of the calls."""
        self._sort([*self._ready, *self._held, *requests])

    def remove(self, request: Request) -> None:
        for some in (self._ready, self._held):
            if request in some:
                some.remove(request)

    def take(self, wanted: Callable[[Request], bool]) -> list[Request]:
        """Removes the requests and notices that meet a condition, and returns them."""
        every = [*self._ready, *self._held]
        self._sort(one for one in every if not wanted(one))
        return [one for one in every if wanted(one)]

    def hold(self) -> None:
        self._is_held = True
        self._sort([*self._ready, *self._held])

    def end_hold(self) -> None:
        self._is_held = False
        self._sort([*self._ready, *self._held])

    def _waits(self, request: Request) -> bool:
        return self._is_held and request.topic not in QUESTIONS and not request.flags & NORESPONSE

    def _sort(self, requests: Iterable[Request]) -> None:
        ordered = sorted(requests, key=lambda one: one.number)
        self._ready = deque(one for one in ordered if not self._waits(one))
        self._held = deque(one for one in ordered if self._waits(one))
