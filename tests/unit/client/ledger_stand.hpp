// A scheduler with a ledger at a daemon that a test plays.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/acquisition.hpp"
#include "client/ledger.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

namespace resourced::test::ledger {

using client::Acquisition;
using client::AcquisitionOptions;
using client::Connection;
using client::Ledger;
using client::Response;
using nlohmann::json;
using text::IdSet;
using wire::FakeBus;
using wire::Frames;

inline rset::ResourceSet nodes_of(const std::string& ranks, const std::string& hosts,
                                  const std::string& cores = "0") {
  return rset::ResourceSet({{IdSet::parse(ranks), IdSet::parse(cores), {}}}, text::Hostlist::parse(hosts));
}
inline rset::ResourceSet nodes(const std::string& ranks, const std::string& cores = "0") {
  return nodes_of(ranks, "n[" + ranks + "]", cores);
}

inline json listed(const std::string& id, const std::string& ranks, const std::string& partition = "") {
  return {{"id", id}, {"partition", partition}, {"R", nodes(ranks).to_json()}};
}
inline json listed_on(const std::string& id, const rset::ResourceSet& resources,
                      const std::string& absent = "") {
  json entry{{"id", id}, {"partition", ""}, {"R", resources.to_json()}};
  if (!absent.empty()) entry["absent"] = absent;
  return entry;
}

inline std::string first_response(const std::vector<json>& allocations, int sequence,
                                  const std::string& hosts = "n[0-3]") {
  return json{{"resources", nodes_of("0-3", hosts, "0-1").to_json()},
              {"up", "0-3"},
              {"allocations", allocations},
              {"sequence", sequence}}
      .dump();
}

inline AcquisitionOptions with_ledger() {
  AcquisitionOptions options;
  options.ledger = true;
  options.lease = std::nullopt;
  return options;
}

class Ends : public client::AcquisitionObserver {
 public:
  std::optional<Error> end;
  std::function<void()> on_held = [] {};
  void on_error(const Error& why) override { end = why; }
  void on_resources(const rset::ResourceSet& /*resources*/, const IdSet& /*up*/) override { on_held(); }
};

using Texts = std::vector<std::string>;

struct LedgerFixture {
  TempDir directory;
  FakeBus bus{"ipc://" + directory.file("bus")};
  Connection connection{"ipc://" + directory.file("bus")};
  Ends observer;
  std::unique_ptr<Acquisition> acquisition =
      std::make_unique<Acquisition>(connection, observer, with_ledger());
  Ledger& ledger = acquisition->ledger();
  Frames stream;
  /// The answers to changes: the errno of each, 0 for success.
  std::vector<int> answers;
  Ledger::Handler handler = [this](const Response& response) {
    answers.push_back(response.ok() ? 0 : response.error().errnum());
  };

  void hold(const std::vector<json>& allocations = {}, int sequence = 5,
            const std::string& hosts = "n[0-3]") {
    stream = bus.receive(connection);
    CHECK(stream.topic() == "resource.acquire");
    bus.respond(stream, first_response(allocations, sequence, hosts), true);
    wire::pump(connection, [&] { return acquisition->state() == Acquisition::State::held; });
  }
  void tell(json news, int sequence) {
    news["sequence"] = sequence;
    bus.respond(stream, news.dump(), true);
    // The news end with one that shows that all before it were handled.
    const auto is_up = [&] { return acquisition->up().contains(3); };
    const bool was_up = is_up();
    bus.respond(stream, was_up ? R"({"down":"3"})" : R"({"up":"3"})", true);
    wire::pump(connection, [&] { return is_up() != was_up; });
  }
  Frames request() { return bus.receive(connection); }
  /// Answers a request as done up to an event.
  void answer(const Frames& to, int sequence) {
    const std::size_t before = answers.size();
    bus.respond(to, json{{"sequence", sequence}}.dump());
    wire::pump(connection, [&] { return answers.size() > before; });
  }
  void lose() {
    bus.close();
    wire::pump(connection, [&] { return acquisition->state() == Acquisition::State::lost; });
    bus.open();
  }
  /// Loses the answer to a change, and gets the daemon back after a start with these hosts, in the order of
  /// ranks. Returns the answer.
  int restart_with(const std::string& hosts, const std::vector<json>& allocations) {
    (void)request();
    lose();
    hold(allocations, 9, hosts);
    wire::pump(connection, [&] { return !answers.empty(); });
    // The change was not sent again: the next request is another one.
    ledger.change({.frees = {{"last"}}}, handler);
    CHECK(json::parse(request().payload()).at("id") == "last");
    return answers.at(0);
  }
  /// Each allocation as `PARTITION/ID RANKS sequence`.
  Texts list() const {
    Texts lines;
    for (const auto& [name, entry] : ledger.list()) {
      lines.push_back(fmt::format("{}/{} {} {}", name.first, name.second,
                                  entry.allocation.resources.ranks().encode(), entry.sequence));
    }
    return lines;
  }
  static Texts ids(const std::vector<Ledger::Name>& names) {
    Texts lines;
    for (const auto& [partition, id] : names) lines.push_back(id);
    return lines;
  }
};

}  // namespace resourced::test::ledger
