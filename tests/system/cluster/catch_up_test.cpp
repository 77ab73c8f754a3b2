// A standby that is far behind reads the log from etcd, in batches of any size.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "client_of_etcd.hpp"
#include "cluster_node.hpp"
#include "core/cluster/keys.hpp"
#include "daemon/log/etcd/record_json.hpp"
#include "daemon/log/records.hpp"
#include "shared_etcd.hpp"
#include "thorough.hpp"

namespace resourced::e2e {
namespace {

using namespace ::resourced::cluster;
using Etcd = test::SharedEtcd;

/// Writes a log of drains and undrains of another member, which leads and never loses its lease.
class LongLog {
 public:
  explicit LongLog(const std::vector<std::string>& urls) : client_(settings(urls)) {}

  /// Continues a log that a daemon has begun, up to this event, with so many events in each batch.
  void write(Sequence last, Sequence events_per_batch) {
    const auto head = std::get<TransactionDone>(client_.known([] {
      return Transaction{{}, {Read{std::string(head_key)}}, {}};
    }));
    Sequence next = sequence_of(head.found.at(0).at(0)) + 1;
    // A transaction of etcd takes 128 operations and 1.5 MiB.
    const std::size_t puts_at_once = events_per_batch == 1 ? 100 : 20;
    while (next <= last) {
      Transaction some;
      while (next <= last && some.then.size() < puts_at_once) {
        const Sequence end = std::min(last, next + events_per_batch - 1);
        some.then.emplace_back(Put{log_key(end), batch(next, end)});
        next = end + 1;
      }
      some.then.emplace_back(Put{std::string(head_key), fmt::format("{}", next - 1)});
      // A busy etcd may leave the outcome unknown, and the same puts again do no harm.
      REQUIRE(std::get<TransactionDone>(client_.known([&] { return some; })).held);
    }
  }
  void lead() {
    constexpr Seconds ttl{600};
    const LeaseId lease = std::get<LeaseDone>(client_.ask(Grant{ttl})).lease;
    (void)client_.ask(Transaction{
        {}, {Put{std::string(leader_key), R"({"name":"x","uri":"tcp://x","process":"x"})", lease}}, {}});
  }

 private:
  static config::Cluster settings(const std::vector<std::string>& urls) {
    config::Cluster settings = test::settings_of(urls);
    settings.prefix = "/resourced/";
    return settings;
  }
  static std::string batch(Sequence first, Sequence last) {
    std::string text = fmt::format("{{\"first\":{},\"epoch\":1,\"parts\":0,\"format\":2}}\n", first);
    for (Sequence sequence = first; sequence <= last; ++sequence)
      text += daemon::log::etcd::encode_record(record(sequence));
    return text;
  }
  static daemon::log::Record record(Sequence sequence) {
    const bool drains = sequence % 2 != 0;
    const std::string rank = fmt::format("{}", (sequence - 1) / 2 % 8);
    daemon::log::Record record;
    record.sequence = sequence;
    record.timestamp = wall_time(1.8e9 + static_cast<double>(sequence) / 100);
    record.name = drains ? "drain" : "undrain";
    record.text = fmt::format(
        "{{\"timestamp\":{:.2f},\"name\":\"{}\",\"context\":{{\"idset\":\"{}\",\"nodelist\":\"test{}\"{}}}}}",
        to_number(record.timestamp), record.name, rank, rank,
        drains ? ",\"reason\":\"memory errors, see the ticket\",\"overwrite\":0" : "");
    record.hosts = text::Hostlist::parse("test" + rank);
    record.by = module::ByUser{1000};
    record.rest = "";
    return record;
  }

  test::Client client_;
};

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

TEST_SUITE_BEGIN("cluster catch-up");

TEST_CASE("a standby that is far behind has the log soon, whatever the size of its batches") {
  const auto events = resourced::test::thorough<Sequence>(100000, 2000);
  for (const Sequence events_per_batch : {1, 64}) {
    CAPTURE(events_per_batch);
    const Etcd etcd;
    Node node("a", etcd.toml());
    node.until_leading();
    node.terminate();
    LongLog log(etcd.urls());
    log.write(events, events_per_batch);
    log.lead();
    node.start();
    until_serving(node.uri());
    const auto begun = std::chrono::steady_clock::now();
    client::Connection standby(node.uri());
    const json status = status_after(standby, static_cast<int>(events));
    const auto shown = std::chrono::steady_clock::now();
    const json stats = standby.call("resource.stats-get", json::object(), patience);
    node.terminate();
    const auto stored = std::chrono::steady_clock::now();
    CHECK(status.at("sequence") == events);
    MESSAGE(events, " events by ", events_per_batch, ": shown after ", seconds(shown - begun),
            " s, on disk at most ", seconds(stored - shown), " s later, longest hold ",
            stats.at("longest-hold").dump());
  }
}

TEST_SUITE_END();

}  // namespace resourced::e2e
