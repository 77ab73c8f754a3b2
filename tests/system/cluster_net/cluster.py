"""A cluster under load: etcd, daemons, agents and clients on hosts of a network, and the events that faults wait for."""

import contextlib
import errno
import json
import os
import pathlib
import queue
import random
import sqlite3
import subprocess
import sys
import threading
import time

from checker import Checker
from fold import up_of
from members import AGENTS, PARTITIONS, Agent, Daemon, Etcd, Failure, Program, until
from network import Network

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 120
CLIENTS = {"c0": ["operator1", "operator2", "package1", "acquisition1"],
           "c1": ["operator3", "command1", "exact1", "acquire1"]}


class Load(Program):
    """The clients of a host; their records go to a queue."""

    def __init__(self, cluster, host, settings):
        super().__init__(cluster.network, host, cluster.directory, f"load-{host}")
        self.settings = settings
        with self.log_file.open("a") as log:
            self.process = self.network.start(
                host, [sys.executable, HERE / "load.py", json.dumps(settings)], text=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log,
                env=os.environ | {"PYTHONPATH": str(HERE.parents[2] / "client/python"), "PYTHONDONTWRITEBYTECODE": "1"})
        threading.Thread(target=self._read, args=(cluster.records,), daemon=True).start()

    def _read(self, records):
        for line in self.process.stdout:
            records.put((self.host, json.loads(line)))
        records.put((self.host, {"kind": "ended"}))

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()


class Cluster:
    def __init__(self, directory, binaries, clock_library, seed, daemons):
        self.directory, self.binaries, self.random = pathlib.Path(directory), binaries, random.Random(seed)
        self.etcd_hosts, self.client_hosts = ["e0", "e1", "e2"], list(CLIENTS)
        self.daemon_hosts = [f"d{number}" for number in range(daemons)]
        self.network = Network([*self.etcd_hosts, *self.daemon_hosts, *self.client_hosts, "agents"])
        self.records = queue.Queue()
        self.loads, self.agents, self.daemons = [], [], []
        self.epoch = 0
        self._leader = None
        #: The last status of the leader, and the last pictures of the schedulers.
        self.status = None
        self.pictures = []
        #: For each takeover, the seconds from the fault to the first change that the successor answers.
        self.takeovers = []
        self.checker = Checker(PARTITIONS, [f"follower-{name}" for name in self.daemon_hosts])
        self._recorded = (self.directory / "records").open("w")
        try:
            self._start(seed, clock_library)
        except BaseException:
            self.end()
            raise

    def _start(self, seed, clock_library):
        self.etcd = None
        self.etcd = Etcd(self.network, self.directory, self.etcd_hosts, self.client_hosts[0])
        server_key = self.directory / "server.key"
        self._keygen(server_key)
        keys = "".join(self._keygen(self.directory / f"{name}.key", "--server-key", server_key).replace('"user"', roles)
                       for name, roles in (("client", '"admin", "scheduler"'), ("agent", '"agent"')))
        self.daemons = [
            Daemon(self.network, self.directory, name, self.binaries, clock_library, self.etcd, server_key, keys)
            for name in self.daemon_hosts
        ]
        for daemon in self.daemons:
            daemon.start()
        uris = ",".join(daemon.uri for daemon in self.daemons)
        key = self.directory / "agent.key"
        self.agents = [Agent(self.network, "agents", self.directory, rank, self.binaries, uris, key) for rank in AGENTS]
        for agent in self.agents:
            agent.start()
        for number, (host, clients) in enumerate(CLIENTS.items()):
            settings = {"uris": {daemon.name: daemon.uri for daemon in self.daemons}, "clients": clients,
                        "key": str(self.directory / "client.key"), "binaries": str(self.binaries),
                        "seed": seed + number, "read": self.daemon_hosts if number else []}
            self.loads.append(Load(self, host, settings))
        self.tell("resume")
        self.until_answered(20)

    def _keygen(self, *arguments):
        return subprocess.run([self.binaries / "resourcectl", "keygen", *arguments], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def end(self):
        programs = [*self.loads, *self.agents, *self.daemons, *(self.etcd.members if self.etcd else [])]
        for program in programs:
            if program.process:
                program.process.kill()
        for program in programs:
            if program.process:
                program.process.wait()
        self.network.end()
        self._recorded.close()

    def tell(self, command):
        for load in self.loads:
            load.tell(command)

    # Events

    def until(self, reached, what, patience=PATIENCE):
        """Takes records until one of them meets the condition, and returns it."""
        deadline = time.monotonic() + patience
        while True:
            try:
                host, record = self.records.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Failure(f"waited in vain until {what}") from None
            self._recorded.write(json.dumps(record) + "\n")
            self._take(host, record)
            if reached(host, record):
                return record

    def _take(self, host, record):
        self.checker.take(record)
        match record["kind"]:
            case "leader" if record["epoch"] > self.epoch:
                self.epoch = record["epoch"]
                self._leader = next(daemon for daemon in self.daemons if daemon.name == record["member"])
            case "status" if "sequence" not in record["status"]:
                self.status = record["status"]
            case "picture":
                self.pictures.append(record)
            case "ended" | "scheduler-error":
                raise Failure(f"a client on {host} has ended or failed: {record}")

    def until_answered(self, count, host=None):
        """Waits until this many changes that are sent from now on are answered."""
        begin, left = time.monotonic(), count

        def is_last(one, record):
            nonlocal left
            left -= (record["kind"] == "change" and record["outcome"] == "ok" and record["sent"] > begin
                     and host in (None, one))
            return left <= 0

        self.until(is_last, f"{count} changes are answered")

    def until_unanswered(self):
        """Waits until a change that is sent from now on has no answer, or is refused because etcd does not answer."""
        begin = time.monotonic()
        self.until(lambda _, record: record["kind"] == "change" and record["sent"] > begin
                   and (record["outcome"] == "unknown" or record.get("errno") == errno.EAGAIN),
                   "a change is not answered")

    def until_led(self):
        former = self.epoch
        self.until(lambda *_: self.epoch > former, "another daemon leads")

    def until_following(self, daemon):
        """Waits until the daemon answers a question that is sent from now on."""
        begin = time.monotonic()
        self.until(lambda _, record: record["kind"] == "status" and record["member"] == daemon.name
                   and record["sent"] > begin, f"{daemon.name} answers")

    def until_recorded(self, hours):
        """Waits for an event whose time is at least so many hours from now; times in the log do not go back."""

        def is_then(event):
            return event[0] > time.time() + hours * 3600 - 60

        self.until(lambda _, record: record["kind"] == "journal" and any(map(is_then, record["events"])),
                   f"an event is recorded {hours} hours from now")

    def rest(self, seconds):
        end = time.monotonic() + seconds
        with contextlib.suppress(Failure):
            self.until(lambda *_: time.monotonic() > end, "the time is over", seconds)

    @contextlib.contextmanager
    def takeover(self):
        """A block that makes another daemon lead; waits for the successor's first answer."""
        former, epoch, begin = self.leader(), self.epoch, time.monotonic()
        yield former
        answer = self.until(lambda _, record: record["kind"] == "change" and record["outcome"] == "ok"
                            and record.get("epoch", 0) > epoch, f"a successor of {former.name} answers")
        self.takeovers.append(answer["done"] - begin)

    # Choices

    def leaders(self):
        """The number of leaders so far."""
        return len(self.checker.member_of)

    def leader(self):
        return self._leader

    def in_use(self):
        return sum(daemon.runs() for daemon in self.daemons)

    def some_standby(self):
        return self.random.choice([daemon for daemon in self.daemons if daemon is not self._leader and daemon.runs()])

    def some_etcd(self):
        """A random member of etcd; half of the time the one that leads."""
        if self.random.random() < 0.5:
            return self.etcd.leader()
        return self.random.choice(self.etcd.members)

    def jump(self, daemon):
        """Shifts the daemon's clock by some hours, and returns them."""
        hours = self.random.choice([-30, -5, -1, 0, 1, 7, 100])
        daemon.set_clock(hours)
        return hours

    def resourcectl(self, *arguments):
        uris = ",".join(daemon.uri for daemon in self.daemons)
        return self.network.start(
            self.client_hosts[0], [self.binaries / "resourcectl", "--uri", uris, *arguments], text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=os.environ | {"RESOURCED_KEY": self.directory / "client.key"})

    # The check

    def check(self):
        """Lets all requests end and all daemons follow, and checks everything since the last check."""
        self.tell("pause")
        self._until_all("paused")
        self._until_pictures_agree()
        head = until(self._common_head, "all stores have the whole log")
        first = self.checker.head + 1
        replicas = {daemon.name: self._ask_store(daemon, "SELECT sequence, timestamp, name, text FROM event "
                                                 f"WHERE sequence > {self.checker.head} AND sequence <= {head}")
                    for daemon in self.daemons}
        batches = [batch for batch in self.etcd.log(self.checker.head) if batch[0] <= head]
        self.checker.check(head, replicas, batches)
        # What the text of an event does not have.
        question = f"SELECT sequence, rest, resources, ledger FROM event WHERE sequence BETWEEN {first} AND {head}"
        stored = {daemon.name: self._ask_store(daemon, question) for daemon in self.daemons}
        if any(rows != stored[self.daemons[0].name] for rows in stored.values()):
            raise Failure(f"the stores have different events: {stored}")
        self.tell("resume")

    def _until_all(self, kind):
        left = {load.host for load in self.loads}

        def is_last(host, record):
            if record["kind"] == kind:
                left.discard(host)
            return not left

        self.until(is_last, f"all clients are {kind}")

    def _until_pictures_agree(self):
        """Waits until the pictures of the schedulers agree with the status of the leader."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.pictures.clear()
            self.tell("show")
            self._until_all("shown")
            if self.status is not None and all(picture["up"] == up_of(self.status, PARTITIONS[picture["partition"]])
                                               for picture in self.pictures):
                return
            if time.monotonic() > deadline:
                raise Failure(f"schedulers have {self.pictures}, the status of the leader is {self.status}")

    def _common_head(self):
        """The number of the last event, once all stores have it."""
        head = self.etcd.head()
        lasts = [self._ask_store(daemon, "SELECT max(sequence) FROM event")[0][0] for daemon in self.daemons]
        return head if min(lasts) >= head else None

    @staticmethod
    def _ask_store(daemon, question):
        with contextlib.closing(sqlite3.connect(f"file:{daemon.store}?mode=ro", uri=True)) as store:
            return store.execute(question).fetchall()
