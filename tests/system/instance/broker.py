"""The broker of rank 0 as the resource module of a Flux instance sees it, in Python; no code of ours, and none of Flux.

It has a KVS, groups, attributes and a job manager, and clients: all of them reach the module over one channel. Nothing
here waits for a time: what is waited for is a message, and DEADLINE only ends a test that has failed.
"""

import base64
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../support"))
from frames import MAGIC, NORESPONSE, REQUEST, RESPONSE, STREAMING, Message, decode

ENOENT, ENOSYS, ENODATA = 2, 38, 61
OWNER, USER, LOCAL = 1, 2, 4
APPEND, SYNC = 32, 4
UNKNOWN_USER = ANY = 0xFFFFFFFF
BROKER = "b0b0b0b0-0000"
MODULE = "01234567-89ab"
OWNER_ID = 1000
DEADLINE = 30


def value(message):
    """The object in a payload, which a JSON payload ends with a NUL."""
    assert message.payload is not None and message.payload.endswith(b"\0"), message.payload
    return json.loads(message.payload[:-1])


def payload(object):
    return None if object is None else json.dumps(object).encode() + b"\0"


class Response:
    def __init__(self, message):
        self.message, self.errnum = message, message.aux
        self.text = (message.payload or b"").rstrip(b"\0").decode() if message.aux else None

    @property
    def value(self):
        assert self.errnum == 0, (self.message.topic, self.errnum, self.text)
        return value(self.message) if self.message.payload else {}


class Request:
    def __init__(self, broker, message):
        self.broker, self.message, self.responses = broker, message, []
        self.is_over = False

    def next(self):
        self.broker.until(lambda: self.responses, f"a response to {self.message.topic}")
        return self.responses.pop(0)

    def take(self, message):
        sent = self.message
        assert not self.is_over, f"{sent.topic}: a response after the last one"
        assert not sent.flags & NORESPONSE, f"{sent.topic}: a response that nobody wants"
        assert message.topic == sent.topic and message.routes == sent.routes
        # Flux would drop the response otherwise, without a message.
        assert (message.userid, message.rolemask) == (sent.userid, sent.rolemask), sent.topic
        is_stream = bool(sent.flags & STREAMING) and message.aux == 0
        assert not is_stream or message.flags & STREAMING, f"{sent.topic}: the stream has lost its flag"
        # Flux's own tests acquire without the streaming flag, and get more than one response nevertheless.
        self.is_over = not is_stream and sent.topic != "resource.acquire"
        self.responses.append(Response(message))


class Client:
    def __init__(self, broker, origin, userid=OWNER_ID, rolemask=OWNER | LOCAL):
        self.broker, self.origin, self.userid, self.rolemask = broker, origin, userid, rolemask
        self.matchtag = 0

    def send(self, method, object=None, flags=0, matchtag=None, raw=None):
        """Sends a request; `raw` is a payload that is not a JSON object."""
        if matchtag is None:
            self.matchtag += 1
            matchtag = self.matchtag
        if flags & NORESPONSE:
            matchtag = 0
        bytes = payload(object) if raw is None else raw
        routes = [BROKER, "connector", self.origin]
        return self.broker.request(
            Message(REQUEST, f"resource.{method}", flags, bytes, routes, self.userid, self.rolemask, ANY, matchtag)
        )

    def call(self, method, object=None, **options):
        return self.send(method, object, **options).next()

    def stream(self, method, object=None, **options):
        return self.send(method, object, flags=STREAMING, **options)

    def cancel(self, request):
        method = request.message.topic.removeprefix("resource.")
        self.send(f"{method}-cancel", {"matchtag": request.message.matchtag}, flags=NORESPONSE)

    def disconnect(self):
        self.send("disconnect", flags=NORESPONSE)


def start_module(keeper, service, welcome, attach=None, options=()):
    """Starts the keeper; returns the broker's end of its channel, and the process, which attaches to `attach` if given."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryFile() as queued, tempfile.TemporaryFile() as about:
        about.write(json.dumps(welcome).encode())
        about.flush()
        process = subprocess.Popen(
            [keeper, f"--channel={theirs.fileno()}", f"--queued={queued.fileno()}", f"--welcome={about.fileno()}"]
            + ["--rank=0", *options, *([f"--attach={attach}"] if attach else ["--", service, "--instance"])],
            pass_fds=[theirs.fileno(), queued.fileno(), about.fileno()],
        )
    theirs.close()
    return ours, process


class Broker:
    def __init__(
        self,
        keeper,
        service,
        size=4,
        hosts="n[0-3]",
        conf=None,
        args=(),
        kvs=None,
        online="0-3",
        torpid="",
        attributes=None,
        attach=None,
        known=None,
        options=(),
    ):
        self.size, self.attributes = size, attributes or {}
        self.kvs = dict(kvs or {})
        self.commits = []  # requests, as the KVS received them
        self.holds_commits = False
        self.held = []
        self.commit_error = 0
        self.cuts_values = False
        self.groups = {"broker.online": online, "broker.torpid": torpid}
        self.watchers = {}
        self.allocated = None  # the answer of the job manager: an R, or an errnum with a text
        self.inquiries = []  # requests to the job manager that are held
        self.holds_inquiries = False
        self.streams = {}  # streams of the job manager, by topic
        self.pings = []  # messages to the scheduler while it is busy
        self.is_busy = False
        self.log = []
        self.statuses = []
        self.history = []  # names of received and answered requests, in their order
        self.requests = {}
        self.out, self.unread, self.is_over = bytearray(), bytearray(), False
        welcome = {
            "uuid": MODULE,
            "args": list(args),
            "attrs": {"rank": "0", "size": str(size), "hostlist": hosts, "security.owner": str(OWNER_ID)}
            | (known or {}),
            "conf": conf or {},
        }
        self.socket, self.keeper = start_module(keeper, service, welcome, attach, options)
        self.socket.setblocking(False)

    def end(self):
        self.socket.close()
        self.keeper.kill()
        self.keeper.wait()

    # Bytes and waiting

    def until(self, condition, what):
        end = time.monotonic() + DEADLINE
        while not condition():
            assert not self.is_over, f"waiting for {what}: the channel is closed; {self.story()}"
            writes = [self.socket] if self.out else []
            readable, writable, _ = select.select([self.socket], writes, [], max(0, end - time.monotonic()))
            assert readable or writable, f"waiting in vain for {what}; {self.story()}"
            if writable:
                del self.out[: self.socket.send(self.out[: 1 << 20])]
            if readable:
                self.read()

    def story(self):
        return f"last: {self.history[-12:]}, log: {self.log[-5:]}"

    def read(self):
        try:
            more = self.socket.recv(1 << 20)
        except ConnectionResetError:
            more = b""
        self.is_over = not more
        self.unread += more
        while len(self.unread) >= 8:
            assert self.unread.startswith(MAGIC), self.unread[:8]
            size = 8 + int.from_bytes(self.unread[4:8], "big")
            if len(self.unread) < size:
                break
            frame = bytes(self.unread[:size])
            del self.unread[:size]
            self.take(decode(frame))

    def send(self, message):
        self.send_bytes(message.encode())

    def send_bytes(self, bytes):
        """Queues bytes without reading, as the other end may have much to say, too."""
        self.out += bytes

    def request(self, message):
        request = Request(self, message)
        if not message.flags & NORESPONSE:
            self.requests[(message.routes[-1], message.matchtag)] = request
        self.send(message)
        return request

    def client(self, origin, **credentials):
        return Client(self, origin, **credentials)

    def fence(self):
        """Waits until everything that follows from earlier messages has arrived: the module does deferred work between
        requests."""
        client = self.client("fence")
        client.matchtag = len(self.requests)
        for _ in range(4):
            client.call("ping", {})

    # The services that a module of rank 0 uses

    def take(self, message):
        if message.type == RESPONSE:
            self.history.append(f"response {message.topic} {message.aux}")
            return self.requests[(message.routes[-1], message.matchtag)].take(message)
        assert message.type == REQUEST and message.routes == [], (message.topic, message.routes)
        assert (message.userid, message.rolemask) == (UNKNOWN_USER, 0), "these mean: the instance's owner"
        assert bool(message.flags & NORESPONSE) == (message.matchtag == 0), message.topic
        self.history.append(message.topic)
        assert self.statuses[-1:] != [3], "a message after the last one"
        handler = {
            "attr.get": self.attribute,
            "groups.get": self.group,
            "groups.disconnect": lambda _: self.watchers.clear(),
            "job-manager.disconnect": lambda _: self.streams.pop("job-manager.events-journal", None),
            "job-manager.events-journal": self.follow_jobs,
            "job-manager.events-journal-cancel": self.cancel_events,
            "job-manager.resource-status": self.inquiry,
            "kvs.commit": self.commit,
            "kvs.lookup": self.lookup,
            "log.append": lambda message: self.log.append(message.payload.decode()),
            "module.disconnect": lambda _: self.streams.pop("module.trace", None),
            "sched.ping": self.ping_scheduler,
            "module.status": self.status,
            "module.trace": self.trace,
        }[message.topic]
        handler(message)

    def answer(self, request, object=None, errnum=0, text=None):
        self.history.append(f"answer {request.topic} {errnum}")
        self.send(request.response(payload(object) if text is None else text.encode() + b"\0", errnum))

    def attribute(self, request):
        name = value(request)["name"]
        if name in self.attributes:
            self.answer(request, {"value": self.attributes[name], "flags": 0})
        else:
            self.answer(request, errnum=ENOENT)

    def lookup(self, request):
        asked = value(request)
        assert asked["namespace"] == "primary" and asked["flags"] == 0, asked
        if asked["key"] not in self.kvs:
            return self.answer(request, errnum=ENOENT)
        data = base64.b64encode(self.kvs[asked["key"]].encode()).decode()
        self.answer(request, {"val": {"ver": 1, "type": "val", "data": data[:-1] if self.cuts_values else data}})

    def commit(self, request):
        self.commits.append(value(request))
        if self.holds_commits:
            self.held.append(request)
        else:
            self.carry_out(request)

    def carry_out(self, request):
        if self.commit_error:
            return self.answer(request, errnum=self.commit_error, text="the KVS is broken")
        asked = value(request)
        assert asked["namespace"] == "primary" and asked["flags"] in (0, SYNC), asked
        for op in asked["ops"]:
            dirent = op["dirent"]
            assert (dirent["ver"], dirent["type"]) == (1, "val") and op["flags"] in (0, APPEND), op
            data = base64.b64decode(dirent["data"], validate=True).decode()
            assert "\0" not in data
            self.kvs[op["key"]] = (self.kvs.get(op["key"], "") if op["flags"] else "") + data
        self.answer(request, {"rootref": "sha1-0", "rootseq": len(self.commits)})

    def release(self):
        """Carries out the held commits, and holds no further ones."""
        self.holds_commits = False
        held, self.held = self.held, []
        for request in held:
            self.carry_out(request)

    def expect_commit(self):
        self.until(lambda: self.held, "a commit")

    def group(self, request):
        assert request.flags & STREAMING
        name = value(request)["name"]
        self.watchers[name] = request
        self.tell(name)

    def tell(self, name):
        response = self.watchers[name].response(payload({"members": self.groups[name]}))
        self.send(response)

    def set_group(self, name, members):
        self.groups[name] = members
        self.until(lambda: name in self.watchers, f"the stream of {name}")
        self.tell(name)

    def inquiry(self, request):
        assert request.aux == 0, "to rank 0"
        self.inquiries.append(request)
        if not self.holds_inquiries:
            self.tell_jobs()

    def tell_jobs(self):
        waiting, self.inquiries = self.inquiries, []
        for request in waiting:
            if self.allocated is None:
                self.answer(request, errnum=ENOSYS)
            elif isinstance(self.allocated, tuple):
                self.answer(request, errnum=self.allocated[0], text=self.allocated[1])
            else:
                self.answer(request, {"allocated": self.allocated})

    def ping_scheduler(self, request):
        self.pings.append(request)
        if not self.is_busy:
            self.wake_scheduler()

    def wake_scheduler(self):
        """Lets the scheduler answer what was sent to it."""
        self.is_busy = False
        pings, self.pings = self.pings, []
        for request in pings:
            self.answer(request, errnum=ENOSYS)

    def follow_jobs(self, request):
        assert request.flags & STREAMING and value(request) == {"full": False, "allow": {"free": 1}}, request
        if self.allocated is None:
            return self.answer(request, errnum=ENOSYS)
        self.streams[request.topic] = request
        self.stream(request.topic, {"id": -1, "events": []})

    def cancel_events(self, request):
        events = self.streams.pop("job-manager.events-journal", None)
        if events and value(request)["matchtag"] == events.matchtag:
            self.answer(events, errnum=ENODATA)

    def trace(self, request):
        wanted = {"typemask": REQUEST, "topic_glob": "sched.free", "names": ["job-manager"], "full": True}
        assert request.flags & STREAMING and value(request) == wanted, request
        self.streams[request.topic] = request

    def stream(self, topic, object):
        if topic in self.streams:
            self.send(self.streams[topic].response(payload(object)))

    def end_stream(self, topic, errnum):
        self.answer(self.streams.pop(topic), errnum=errnum)

    def free(self, ranks, ends=True, is_traced=True):
        """A job returns these ranks to the scheduler; its end is an event."""
        if ends:
            self.stream("job-manager.events-journal", {"id": 1, "events": [{"timestamp": 1.0, "name": "free"}]})
        execution = {"R_lite": [{"rank": ranks, "children": {"core": "0"}}], "nodelist": [f"n{ranks}"]}
        freed = {"id": 1, "R": {"version": 1, "execution": execution | {"starttime": 0, "expiration": 0}}, "final": ends}
        if is_traced:
            self.stream("module.trace", {"prefix": "tx", "topic": "sched.free", "payload": freed})

    def unload_job_manager(self):
        self.allocated = None
        self.end_stream("job-manager.events-journal", ENODATA)

    def status(self, request):
        told = value(request)
        self.statuses.append(told["status"])
        if told["status"] == 2:
            self.answer(request)
        elif told["status"] == 3:
            self.errnum = told["errnum"]

    # The life of the module

    def expect_running(self):
        self.until(lambda: self.statuses == [1], "running")
        return self

    def expect_end(self, errnum=0):
        """Waits for the states of an end in their order, with this errnum and exit status 0."""
        self.until(lambda: 3 in self.statuses, "the end")
        assert self.statuses[-2:] == [2, 3] and self.errnum == errnum, (self.statuses, self.errnum, self.log)
        assert self.keeper.wait(DEADLINE) == 0

    def shut_down(self):
        self.client("broker").send("shutdown", flags=NORESPONSE)
        self.expect_end()

    def expect_log(self, text):
        self.until(lambda: any(text in line for line in self.log), f"a line in the log with {text}")
        return next(line for line in self.log if text in line)

    # What is in the KVS

    def events(self):
        return [json.loads(line) for line in self.kvs.get("resource.eventlog", "").splitlines()]

    def checkpoint(self):
        return json.loads(self.kvs["checkpoint.resource"])
