"""Requests that wait until no job runs on targets: when the module asks the job manager, and how it uses the answers."""

import os
import pathlib
import signal

from broker import USER
from cases import BUSY, EPROTO, HOSTUNREACH, INVAL, NODATA, NOSYS, Case, resources

INQUIRY = "job-manager.resource-status"
NOT_LOADED = "nobody reports what runs on {}: no job manager is loaded"


class Waits(Case):
    def wait(self, broker, targets, **options):
        """Sends the request from an operator with an origin of its own."""
        operator = broker.client(f"operator{len(broker.requests)}")
        request = operator.send("wait", {"targets": targets, "for": "idle"} | options)
        request.sender = operator
        return request

    def asked(self, broker):
        return broker.history.count(INQUIRY)

    def with_jobs(self, ranks, hosts):
        """A module with a scheduler, and with jobs on these ranks."""
        broker = self.running()
        self.acquired(broker)
        broker.allocated = resources(ranks, hosts, "0")
        return broker

    def done(self, broker, request):
        response = request.next()
        self.assertEqual((response.errnum, response.text), (0, None))
        self.assertTrue(request.is_over)

    def test_it_ends_when_the_last_job_has_freed_its_targets(self):
        broker = self.with_jobs("1-3", "n[1-3]")
        request = self.wait(broker, "n[0-2]")
        self.quiet(broker, request)
        asked = self.asked(broker)
        broker.free("1", ends=False)
        broker.allocated = resources("2-3", "n[2-3]", "0")
        self.quiet(broker, request)
        broker.allocated = resources("3", "n3", "0")
        broker.free("2")
        self.done(broker, request)
        broker.until(lambda: not broker.streams, "the end of the streams")
        self.assertLessEqual(self.asked(broker) - asked, 2)
        broker.shut_down()

    def test_nothing_is_asked_but_when_jobs_free_what_somebody_waits_for(self):
        broker = self.with_jobs("1-3", "n[1-3]")
        broker.fence()
        self.assertEqual((self.asked(broker), broker.streams), (0, {}))
        first, second = (self.wait(broker, targets) for targets in ("1", "2"))
        broker.until(lambda: len(broker.streams) == 2, "the streams")
        self.quiet(broker, first, second)
        asked = self.asked(broker)
        broker.free("3")
        self.quiet(broker, first, second)
        self.assertEqual(self.asked(broker), asked)
        first.sender.cancel(first)
        self.refused(first.next(), NODATA)
        # The other request goes on.
        broker.free("1")
        self.quiet(broker, second)
        self.assertEqual((self.asked(broker), len(broker.streams)), (asked, 2))
        second.sender.disconnect()
        broker.until(lambda: not broker.streams, "the end of the streams")
        broker.shut_down()

    def test_a_job_that_has_begun_after_the_last_answer_counts(self):
        broker = self.running()
        self.acquired(broker)
        broker.holds_inquiries = True
        broker.allocated = resources("3", "n3", "0")
        shown = broker.client("c").send("sched-status")
        broker.until(lambda: broker.inquiries, "an inquiry")
        request = self.wait(broker, "1")
        broker.fence()
        (early,) = broker.inquiries
        broker.tell_jobs()
        self.assertEqual(shown.next().errnum, 0)
        broker.until(lambda: broker.inquiries and broker.inquiries[0] is not early, "another inquiry")
        self.quiet(broker, request)
        broker.allocated = resources("1", "n1", "0")
        broker.tell_jobs()
        self.quiet(broker, request)
        broker.holds_inquiries = False
        broker.allocated = resources("3", "n3", "0")
        broker.free("1")
        self.done(broker, request)
        broker.shut_down()

    def test_a_job_that_a_busy_scheduler_starts_on_a_drained_target_counts(self):
        broker = self.with_jobs("3", "n3")
        broker.is_busy = True
        broker.client("operator").call("drain", {"targets": "1"}).value
        requests = [self.wait(broker, "1"), self.wait(broker, "2", **{"for": "reported"})]
        broker.until(lambda: broker.pings, "a message to the scheduler")
        self.quiet(broker, *requests)
        self.assertEqual(broker.history.count(INQUIRY), 0)
        # The scheduler has allocated before it reads of the drain.
        broker.allocated = resources("1,3", "n[1,3]", "0")
        broker.wake_scheduler()
        self.done(broker, requests[1])
        self.quiet(broker, requests[0])
        broker.allocated = resources("3", "n3", "0")
        broker.free("1")
        self.done(broker, requests[0])
        broker.shut_down()

    def test_without_a_scheduler_events_of_jobs_are_what_is_left(self):
        broker = self.running()
        broker.allocated = resources("1", "n1", "0")
        request = self.wait(broker, "1")
        self.quiet(broker, request)
        broker.allocated = resources("3", "n3", "0")
        broker.free("1", is_traced=False)
        self.done(broker, request)
        broker.shut_down()

    def test_nobody_knows_without_a_job_manager(self):
        broker = self.running()
        self.acquired(broker)
        for condition in ("idle", "reported"):
            refused = self.wait(broker, "n[1-2]", **{"for": condition})
            self.refused(refused.next(), HOSTUNREACH, NOT_LOADED.format("n[1-2]"))
            self.done(broker, self.wait(broker, "n[1-2]", unreported="idle", **{"for": condition}))
        broker.allocated = (5, "out of order")
        failed = "nobody reports what runs on n1: job-manager.resource-status request failed: out of order"
        self.refused(self.wait(broker, "1").next(), HOSTUNREACH, failed)
        broker.allocated = resources("1", "n1", "0")
        self.done(broker, self.wait(broker, "0-3", **{"for": "reported"}))
        self.quiet(broker, self.wait(broker, "1", unreported="idle"))
        broker.shut_down()

    def test_a_job_manager_that_goes_is_asked_again_when_a_scheduler_acquires(self):
        broker = self.with_jobs("1", "n1")
        accepted = self.wait(broker, "1")
        late = self.wait(broker, "2", unreported="wait")
        self.done(broker, late)
        broker.allocated = None
        broker.client("scheduler").disconnect()
        broker.unload_job_manager()
        late = self.wait(broker, "2", unreported="wait")
        self.refused(self.wait(broker, "2").next(), HOSTUNREACH, NOT_LOADED.format("n2"))
        self.quiet(broker, accepted, late)
        broker.allocated = resources("1", "n1", "0")
        scheduler, _ = self.acquired(broker, "another")
        self.done(broker, late)
        self.quiet(broker, accepted, scheduler)
        broker.allocated = resources("3", "n3", "0")
        broker.free("1")
        self.done(broker, accepted)
        broker.shut_down()

    def test_an_answer_that_says_nothing_of_the_resources_asks_anew(self):
        broker = self.with_jobs("1", "n1")
        request = self.wait(broker, "1")
        self.quiet(broker, request)
        broker.allocated = resources("3", "n3", "0")
        broker.stream("module.trace", {"payload": None})
        self.done(broker, request)
        broker.shut_down()

    def test_without_a_trace_the_log_says_so_and_events_of_jobs_are_what_is_left(self):
        broker = self.with_jobs("1-2", "n[1-2]")
        first, second = (self.wait(broker, targets) for targets in ("1", "2"))
        self.quiet(broker, first, second)
        broker.allocated = resources("2", "n2", "0")
        broker.free("1", is_traced=False)
        self.quiet(broker, first, second)
        broker.end_stream("module.trace", NOSYS)
        broker.expect_log("resource.wait does not see the end of housekeeping")
        self.done(broker, first)
        self.quiet(broker, second)
        broker.allocated = resources("3", "n3", "0")
        broker.free("2", is_traced=False)
        self.done(broker, second)
        broker.shut_down()

    def test_nobody_is_asked_whether_anybody_reports_if_that_does_not_matter(self):
        broker = self.with_jobs("1", "n1")
        broker.is_busy = broker.holds_inquiries = True
        self.done(broker, self.wait(broker, "0-3", unreported="idle", **{"for": "reported"}))
        self.assertEqual((self.asked(broker), broker.pings, broker.streams), (0, [], {}))
        broker.shut_down()

    def test_all_users_may_wait_and_bad_requests_are_refused(self):
        broker = self.with_jobs("1", "n1")
        guest = broker.client("guest", userid=7, rolemask=USER)
        self.done(broker, guest.send("wait", {"targets": "0,2", "for": "idle"}))
        self.done(broker, guest.send("wait", {"targets": "n[0-3]", "for": "ready"}))
        for bad in ({}, {"targets": "1"}, {"targets": "1", "for": "lunch"}):
            self.assertEqual(guest.call("wait", bad).errnum, EPROTO)
        self.assertEqual(guest.call("wait", {"targets": "x", "for": "idle"}).errnum, INVAL)
        for _ in range(1024):
            last = guest.send("wait", {"targets": "1", "for": "idle"})
        self.quiet(broker, last)
        self.assertEqual(guest.call("wait", {"targets": "1", "for": "idle"}).errnum, BUSY)
        # The limit is for each user.
        self.done(broker, self.wait(broker, "2"))
        guest.disconnect()
        self.done(broker, guest.send("wait", {"targets": "0", "for": "idle"}))
        broker.shut_down()

    def test_the_end_of_the_module_ends_it(self):
        broker = self.with_jobs("1", "n1")
        request = self.wait(broker, "1")
        self.quiet(broker, request)
        broker.shut_down()
        self.assertNotEqual(request.next().errnum, 0)

    def test_a_wait_of_the_owner_outlives_the_process(self):
        broker = self.with_jobs("1", "n1")
        request = self.wait(broker, "1")
        guest = broker.client("guest", userid=7, rolemask=USER).send("wait", {"targets": "1", "for": "idle"})
        self.quiet(broker, request, guest)
        (process,) = pathlib.Path(f"/proc/{broker.keeper.pid}/task/{broker.keeper.pid}/children").read_text().split()
        os.kill(int(process), signal.SIGKILL)
        self.assertEqual(guest.next().errnum, HOSTUNREACH)
        broker.until(lambda: len(broker.streams) == 2, "the streams of the next process")
        self.quiet(broker, request)
        broker.allocated = resources("3", "n3", "0")
        broker.free("1")
        self.done(broker, request)
        broker.shut_down()
