"""Two daemons of a cluster that a test plays."""

import errno

from cases import Case
from played import Talking, answer, response

from resourced import ResourcedError
from resourced._message import encode_frame

UNLOADED = "the resource module was unloaded"
STANDBY = ResourcedError(errno.EHOSTUNREACH, "this daemon does not lead its cluster: standby")


class Member(Talking):
    """A daemon that answers `resource.leader` by `leads`, a payload, an error or its number, and other topics by
    `replies`: with the same, with bytes, or not at all (None). A function in `replies` gets the number of requests so
    far of this topic. `requests` has the topics of all requests but resource.leader."""

    def __init__(self, leads):
        super().__init__(self.reply)
        self.leads = leads
        self.replies = {}
        self.requests = []
        self._unanswered = []
        self._writers = []

    def reply(self, topic, matchtag, payload):
        if topic != "resource.leader":
            self.requests.append(topic)
        says = self.leads if topic == "resource.leader" else self.replies.get(topic, {})
        if callable(says):
            says = says(self.requests.count(topic))
        if says is None:
            self._unanswered.append((topic, matchtag))
            return b""
        return says if isinstance(says, bytes) else self._bytes(topic, matchtag, says)

    def _bytes(self, topic, matchtag, says):
        if isinstance(says, int):
            says = ResourcedError(says)
        if isinstance(says, ResourcedError):
            return encode_frame(response(matchtag, says.text.encode(), errnum=says.errno))
        return answer(matchtag, says, streaming=topic in ("resource.acquire", "resource.journal"))

    def answer_now(self, *answers):
        """Answers requests that have no answer, given as `(topic, answer)`, all in one piece."""
        text = b""
        for topic, says in answers:
            asked = next(one for one in self._unanswered if one[0] == topic)
            self._unanswered.remove(asked)
            text += self._bytes(*asked, says)
        self._writers[-1].write(text)

    async def serve(self, reader, writer):
        self._writers.append(writer)
        await super().serve(reader, writer)

    def hang_up(self):
        for writer in self._writers:
            writer.close()


class Members(Case):
    """Two daemons; `a` is the leader."""

    async def asyncSetUp(self):
        self.a = await self.enterAsyncContext(Member({"epoch": 1}))
        self.b = await self.enterAsyncContext(Member(STANDBY))
        self.uri = f"{self.a.uri},{self.b.uri}"

    def move(self, epoch=2, **more):
        self.a.leads, self.b.leads = STANDBY, {"epoch": epoch, **more}

    def lose(self):
        self.move()
        self.a.hang_up()
