// Schedulers that promise to send something from time to time, and lose their resources if they do not.
#include <cerrno>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "acquire_stand.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::test {

TEST_SUITE_BEGIN("lease");

TEST_CASE_FIXTURE(AcquireStand, "a scheduler that is silent for its lease loses its resources") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"lease", 5}});
  receive(client);
  const auto next = connect();
  acquire(next, {{"partition", "batch"}, {"wait", true}});
  const SteadyTime begin = uptime;
  uptime += Seconds(3);
  request(client, "resource.acquire-renew", nullptr, noresponse);
  next_pause();
  CHECK(uptime - begin == Seconds(5));
  CHECK(silent(client));
  // A request that is refused renews as well.
  uptime = begin + Seconds(7);
  request(client, "resource.no-such-topic", nullptr, noresponse);
  next_pause();
  CHECK(uptime - begin == Seconds(8));
  CHECK(silent(client));
  next_pause();
  CHECK(uptime - begin == Seconds(12));
  CHECK(silent(client));
  next_pause();
  CHECK(uptime - begin < Seconds(12.5));
  const proto::Message end = receive(client);
  CHECK(end.errnum() == ETIMEDOUT);
  CHECK(end.text() == "the lease is over: nothing came from this scheduler for 5s");
  CHECK(receive_json(next)["up"] == "0-1");
  CHECK(later.empty());
}

TEST_CASE_FIXTURE(AcquireStand, "time in which the daemon did not run does not count for a lease") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"lease", 5}});
  receive(client);
  const SteadyTime begin = uptime;
  // The daemon was stopped and runs late. What the scheduler has sent meanwhile is still unread.
  uptime = begin + Seconds(60);
  next_pause();
  CHECK(silent(client));
  request(client, "resource.acquire-renew", nullptr, noresponse);
  next_pause();
  CHECK(uptime - begin == Seconds(65));
  CHECK(silent(client));
}

TEST_CASE_FIXTURE(AcquireStand, "a scheduler that stands still with its daemon has its lease afterwards") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"lease", 5}});
  receive(client);
  const SteadyTime begin = uptime;
  uptime = begin + Seconds(60);
  next_pause();
  next_pause();
  CHECK(uptime - begin == Seconds(65));
  CHECK(silent(client));
  next_pause();
  CHECK(receive(client).errnum() == ETIMEDOUT);
  CHECK(uptime - begin < Seconds(65.5));
}

TEST_CASE_FIXTURE(AcquireStand, "a stop of the daemon in the middle of a lease makes it longer") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"lease", 30}});
  receive(client);
  const SteadyTime begin = uptime;
  next_pause();
  CHECK(uptime - begin == Seconds(5));
  // The next timer should have fired after 10 seconds, and the stop may have begun after 5.
  uptime = begin + Seconds(60);
  next_pause();
  while (silent(client)) next_pause();
  CHECK(receive(client).errnum() == ETIMEDOUT);
  CHECK(uptime - begin > Seconds(85));
  CHECK(uptime - begin < Seconds(86));
}

TEST_CASE_FIXTURE(AcquireStand, "a stop of the daemon counts for no lease that was renewed before") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"lease", 30}});
  receive(client);
  const SteadyTime begin = uptime;
  for (int i = 0; i < 5; ++i) next_pause();
  CHECK(uptime - begin == Seconds(25));
  uptime = begin + Seconds(28);
  request(client, "resource.acquire-renew", nullptr, noresponse);
  uptime = begin + Seconds(90);
  next_pause();
  while (silent(client)) next_pause();
  CHECK(receive(client).errnum() == ETIMEDOUT);
  // At least 62 of these seconds do not count, and at most 65.
  CHECK(uptime - begin > Seconds(120));
  CHECK(uptime - begin < Seconds(124));
}

TEST_CASE_FIXTURE(AcquireStand, "a request that arrives just before the end of a lease renews it") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"lease", 5}});
  receive(client);
  next_pause();
  REQUIRE_FALSE(later.empty());
  const auto [when, work] = std::move(later.front());
  later.pop_front();
  uptime = when;
  work();
  // The end of the acquire is on its way, and the loop reads this request first.
  request(client, "resource.acquire-renew", nullptr, noresponse);
  settle();
  while (posted() > 0) step();
  CHECK(silent(client));
  CHECK_FALSE(later.empty());
}

TEST_CASE_FIXTURE(AcquireStand, "a request that waits behind a large one renews a lease when it arrives") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"lease", 5}});
  receive(client);
  const SteadyTime begin = uptime;
  request(client, "resource.free", {{"id", std::string(100000, 'x')}});
  uptime = begin + Seconds(3);
  request(client, "resource.ping");
  CHECK(silent(client));
  next_pause();
  CHECK(uptime - begin == Seconds(5));
  while (silent(client)) step();
  CHECK(receive(client).topic == "resource.free");
  while (silent(client)) step();
  CHECK(receive(client).topic == "resource.ping");
  // The time at which its turn came does not count.
  next_pause();
  CHECK(uptime - begin == Seconds(8));
  CHECK(silent(client));
  next_pause();
  CHECK(receive(client).errnum() == ETIMEDOUT);
  CHECK(uptime - begin < Seconds(8.5));
}

TEST_CASE_FIXTURE(AcquireStand, "the timer of a long lease does not stay long after its acquire") {
  const auto client = connect();
  for (int i = 0; i < 3; ++i) {
    const auto tag = acquire(client, {{"partition", "batch"}, {"lease", 3600}});
    receive(client);
    request(client, "resource.acquire-cancel", {{"matchtag", tag}}, noresponse);
    receive(client);
  }
  catch_up();
  CHECK(uptime - SteadyTime{} < Seconds(20));
}

TEST_CASE_FIXTURE(AcquireStand, "the lease of a request that waits runs, too") {
  const auto holder = connect();
  acquire(holder, {{"partition", "batch"}});
  receive(holder);
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"wait", true}, {"lease", 5}});
  next_pause();
  next_pause();
  CHECK(receive(client).errnum() == ETIMEDOUT);
  CHECK(waiting().empty());
}

TEST_CASE_FIXTURE(AcquireStand, "a lease ends with its request, and not with another one of its matchtag") {
  const auto client = connect();
  const auto tag = acquire(client, {{"partition", "batch"}, {"lease", 5}});
  receive(client);
  request(client, "resource.acquire-cancel", {{"matchtag", tag}}, noresponse);
  CHECK(receive(client).errnum() == ECANCELED);
  service->on_message(
      client, proto::make_request("resource.acquire", tag, proto::make_payload(R"({"partition": "batch"})"),
                                  streaming));
  settle();
  receive(client);
  catch_up();
  CHECK(silent(client));
  CHECK(uptime - SteadyTime{} < Seconds(20));
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test
