"""Compares all answers that clients got with the log of the cluster.

Records of clients (load.py) come one after the other to take(). From time to time nothing is under way and all
replicas have the whole log; then check() gets the events since the last time, of each replica and of etcd, read after
all records, and reports every contradiction to these rules:

- The log has no gap, and is the same in etcd and in all replicas; epochs and times in it never fall.
- A change that was answered with success is in it exactly once, in the epoch of the leader that answered it, and one
  that was refused is not in it. One without an answer is in it at most once. There is no other change in it.
- Changes of a connection are in it in the order of their requests. A change that was answered before another one was
  sent comes before it.
- No answer of a leader is to a request that was sent after the answer of a later leader.
- The status of a standby is the fold of the log up to the event that it names, which never goes back. That of a leader
  is the fold up to an event after all changes that had been answered, and before all that were not sent yet.
- Each follower of a journal gets each event once, in order.
- The picture of a scheduler follows the rule for the status of a leader.
"""

import json
from collections import defaultdict, deque

from fold import Fold, states_of

LEDGER = {"alloc", "free"}
CHANGES = {"drain", "undrain"} | LEDGER


class Violation(Exception):
    pass


def ids_of(name, context):
    """The ids of the changes that made this event."""
    match name:
        case "alloc":
            return [one["id"] for one in context["allocations"]]
        case "free":
            return context["ids"]
        case "drain" | "undrain":
            return [context.get("reason", "")]
    return []


class Checker:
    def __init__(self, partitions, followers):
        self.partitions = partitions
        self.fold = Fold()
        #: The number of the last event that was checked.
        self.head = 0
        #: The number of the event of each change.
        self.places = {}
        #: Changes without an answer, which may still be made.
        self.unknown = {}
        #: Changes that were answered with success. A scheduler may send one again that its list did not show yet.
        self.answered = set()
        self.member_of = {}
        self.last_epoch = 0
        self.last_status = defaultdict(int)
        self.last_acquired = defaultdict(int)
        #: For each follower, events that it has not received yet, and received events that are not checked yet.
        self.expected = {name: deque() for name in followers}
        self.followed = {name: deque() for name in followers}
        self.counts = defaultdict(int)
        #: The epochs of leaders that started with nodes offline that had been online.
        self.outages = []
        self.found = []
        self._begin()

    def _begin(self):
        self.found = []
        self.changes, self.answers, self.views = [], [], []
        self.epochs = {}

    def report(self, text):
        self.found.append(text)

    # Records

    def take(self, record):
        kind = record["kind"]
        self.counts[kind] += 1
        match kind:
            case "change":
                self.changes.append(record)
                self.counts[record["outcome"]] += 1
                if record.get("epoch") and record["outcome"] == "ok":
                    self.answers.append(record)
            case "leader":
                self.answers.append(record)
                if self.member_of.setdefault(record["epoch"], record["member"]) != record["member"]:
                    self.report(f"two leaders of one epoch: {record} and {self.member_of[record['epoch']]}")
            case "acquired":
                if record["epoch"] < self.last_acquired[record["scheduler"]]:
                    self.report(f"a scheduler acquired in a lower epoch than before: {record}")
                self.last_acquired[record["scheduler"]] = record["epoch"]
            case "status":
                self.views.append(record)
            case "journal":
                if record["events"]:
                    *others, last = record["events"]
                    self.followed[record["follower"]] += [*((one, None) for one in others), (last, record["last"])]
            case "picture" if "sent" in record:
                self.views.append(record)

    # The log

    def check(self, head, replicas, batches):
        """Checks all since the last head. `replicas` has, by daemon, the events as (sequence, timestamp, name, text);
        `batches` has the same events in etcd, as (last, header, records)."""
        events = self._compare(head, replicas, batches)
        self._place(events)
        if not self.found:
            self._check_outcomes()
            self._check_order()
            self._check_epochs()
            self._check_views(events)
            self._check_followers()
        found, self.head = self.found, head
        self._begin()
        if found:
            more = f"\n... and {len(found) - 20} more" if len(found) > 20 else ""
            raise Violation("\n".join(found[:20]) + more)

    def _compare(self, head, replicas, batches):
        names = sorted(replicas)
        log = replicas[names[0]]
        if [row[0] for row in log] != list(range(self.head + 1, head + 1)):
            self.report(f"the log of {names[0]} is not that from {self.head + 1} to {head}: {[row[0] for row in log]}")
        for (_, before, *_), (sequence, after, *_) in zip(log, log[1:]):
            if after < before:
                self.report(f"event {sequence} has the time {after}, the one before it {before}")
        for name in names[1:]:
            for one, other in zip(log, replicas[name]):
                if one != other:
                    self.report(f"{names[0]} and {name} differ: {one} and {other}")
                    break
            if len(log) != len(replicas[name]):
                self.report(f"{names[0]} has {len(log)} events after {self.head}, {name} has {len(replicas[name])}")
        hidden = self._compare_with_etcd(head, log, batches)
        events = [(sequence, timestamp, name, json.loads(text)["context"]) for sequence, timestamp, name, text in log]
        visible = [event for event in events if event[0] not in hidden]
        for expected in self.expected.values():
            expected.extend(visible)
        return events

    def _compare_with_etcd(self, head, log, batches):
        hidden, next_one, row_of = set(), self.head + 1, {row[0]: row for row in log}
        for last, header, records in batches:
            epoch = header["epoch"]
            if header["first"] != next_one:
                self.report(f"the log in etcd goes on with {header['first']} and not with {next_one}")
            next_one = last + 1
            if epoch < self.last_epoch:
                self.report(f"event {last} in etcd is of epoch {epoch}, an earlier one of {self.last_epoch}")
            self.last_epoch = epoch
            for record in records:
                sequence = record["sequence"]
                self.epochs[sequence] = epoch
                if record.get("hidden"):
                    hidden.add(sequence)
                row = (sequence, record["timestamp"], record["name"], record["text"])
                if row_of.get(sequence) != row:
                    self.report(f"event {sequence} is {row} in etcd and {row_of.get(sequence)} in the replicas")
        if next_one != head + 1:
            self.report(f"the log in etcd ends with {next_one - 1} and not with {head}")
        return hidden

    def _place(self, events):
        sent = {(change["name"], change["id"]): change for change in self.changes}
        for sequence, _, name, context in events:
            if name not in CHANGES:
                continue
            for id in ids_of(name, context):
                key = (name, id)
                if key in self.places:
                    self.report(f"{name} {id} is in the log twice, as {self.places[key]} and as {sequence}")
                self.places[key] = sequence
                change = sent.get(key) or self.unknown.get(key)
                if change is None:
                    self.report(f"event {sequence} is {name} {id}, which nobody has sent")
                elif name not in LEDGER and context["idset"] != change["targets"]:
                    self.report(f"event {sequence} is {name} {id} of {context['idset']}, sent was {change}")

    def _check_outcomes(self):
        # If an allocation was not freed, it is freed again, with the same id.
        made = {(change["name"], change["id"]) for change in self.changes if change["outcome"] != "error"}
        made |= self.unknown.keys()
        for change in self.changes:
            key = (change["name"], change["id"])
            place = self.places.get(key)
            if change["outcome"] == "ok":
                self.answered.add(key)
            match change["outcome"]:
                case "ok" if place is None:
                    self.report(f"answered, and not in the log: {change}")
                case "ok" if change.get("epoch", self.epochs.get(place)) != self.epochs.get(place):
                    self.report(f"event {place} is of epoch {self.epochs.get(place)}: {change}")
                case "error" if place is not None and key not in made:
                    self.report(f"refused, but event {place} of the log: {change}")
                case "unknown" if place is None:
                    self.unknown[key] = change

    # Order

    def _placed(self):
        """The changes since the last check that are in the log, with the numbers of their events. Of a change that was
        sent several times, the event is that of the answer with success; without one it may be that of any of them."""
        sent = [(change["name"], change["id"]) for change in self.changes if change["outcome"] == "unknown"]
        placed = []
        for change in self.changes:
            key = (change["name"], change["id"])
            place = self.places.get(key)
            if place is None or change["outcome"] == "error":
                continue
            was_sent_before = key in self.answered or key in self.unknown or place <= self.head
            if change["outcome"] == "ok" or not (was_sent_before or sent.count(key) > 1):
                placed.append((place, change))
        return placed

    def _check_order(self):
        last = {}
        placed = self._placed()
        for place, change in sorted((one for one in placed if "order" in one[1]), key=lambda one: one[1]["order"]):
            connection = change["client"], change["link"]
            if place < last.get(connection, (0, None))[0]:
                self.report(f"in the log as {place}, before the earlier request {last[connection]}: {change}")
            last[connection] = place, change
        answered = sorted(((change["done"], place, change) for place, change in placed if change["outcome"] == "ok"),
                          key=lambda one: one[0])
        latest, at = (self.head, None), 0
        for place, change in sorted(placed, key=lambda one: one[1]["sent"]):
            while at < len(answered) and answered[at][0] < change["sent"]:
                latest = max(latest, answered[at][1:], key=lambda one: one[0])
                at += 1
            if place <= latest[0]:
                self.report(f"in the log as {place}, before {latest}, which was answered before it was sent: {change}")

    def _check_epochs(self):
        answered = sorted(self.answers, key=lambda one: one["done"])
        latest, at = None, 0
        for answer in sorted(self.answers, key=lambda one: one["sent"]):
            while at < len(answered) and answered[at]["done"] < answer["sent"]:
                latest = max(latest or answered[at], answered[at], key=lambda one: one["epoch"])
                at += 1
            if latest and answer["epoch"] < latest["epoch"]:
                self.report(f"an answer of a deposed leader, {answer}, after that of a later one, {latest}")

    # States

    def _check_views(self, events):
        """Goes through the log once, and compares the state after each event with the statuses and pictures of that
        time."""
        views = defaultdict(list)
        for first, last, record in self._windows(self.head + len(events)):
            views[first].append((last, record))
        under_way = []
        for sequence in range(self.head, self.head + len(events) + 1):
            if sequence > self.head:
                online = self.fold.online
                _, _, name, context = events[sequence - self.head - 1]
                self.fold.apply(name, context)
                if name == "restart" and not online <= self.fold.online:
                    self.outages.append(self.epochs[sequence])
            under_way += views.pop(sequence, ())
            under_way = [one for one in under_way if not self._is_true(one[1])]
            for last, record in under_way:
                if last <= sequence:
                    self.report(f"never true up to event {sequence}, which leads to {self.fold.states()}: {record}")
            under_way = [one for one in under_way if one[0] > sequence]
        for _, record in (one for later in views.values() for one in later):
            self.report(f"of an event that is not in the log: {record}")

    def _is_true(self, record):
        if record["kind"] == "picture":
            return record["up"] == sorted(self.fold.up() & set(self.partitions[record["partition"]]))
        return states_of(record["status"]) == self.fold.states()

    def _windows(self, end):
        """The first and the last event after which each view may have been true."""
        of_leaders = []
        for record in self.views:
            sequence = record["status"].get("sequence") if record["kind"] == "status" else None
            if sequence is None:
                of_leaders.append(record)
                continue
            if sequence < max(self.last_status[record["reader"]], self.head):
                self.report(f"the status of {record['member']} goes back from {self.last_status[record['reader']]}: {record}")
            else:
                self.last_status[record["reader"]] = sequence
                yield sequence, sequence, record
        placed = self._placed()
        answered = sorted((change["done"], place) for place, change in placed if change["outcome"] == "ok")
        first, at = self.head, 0
        firsts = {}
        for record in sorted(of_leaders, key=lambda one: one["sent"]):
            while at < len(answered) and answered[at][0] < record["sent"]:
                first = max(first, answered[at][1])
                at += 1
            firsts[id(record)] = first
        unsent = sorted(((change["sent"], place) for place, change in placed), reverse=True)
        last, at = end, 0
        for record in sorted(of_leaders, key=lambda one: one["done"], reverse=True):
            while at < len(unsent) and unsent[at][0] > record["done"]:
                last = min(last, unsent[at][1] - 1)
                at += 1
            yield firsts[id(record)], last, record

    def _check_followers(self):
        for follower, got in self.followed.items():
            expected = self.expected[follower]
            while got and expected:
                (timestamp, name, context), last = got.popleft()
                event = expected.popleft()
                if event[1:] != (timestamp, name, context) or last not in (None, event[0]):
                    self.report(f"{follower} got {(timestamp, name, context)} as {last}, expected was {event}")
                    break
