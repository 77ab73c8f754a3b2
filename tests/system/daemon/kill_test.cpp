// Repeated kill -9 under load: after each start the state must have all answered requests, and may have some
// of the unanswered ones. It is compared with a model of the requests of each operator.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture.hpp"
#include "thorough.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

constexpr unsigned operators = 4;
constexpr unsigned ranks_each = 6;
constexpr unsigned requests_each = 10;

const std::string operators_nodes =
    fmt::format("[[resource.config]]\nhosts = \"node[0-{}]\"\ncores = \"0-3\"\n", operators* ranks_each - 1);

/// The expected state of the ranks that only this operator uses.
struct Part {
  std::map<unsigned, std::string> drained;
  std::set<unsigned> marked;
};

/// One request, which leads to exactly one event.
struct Change {
  enum class Kind { drain, undrain, mark, unmark };
  Kind kind;
  unsigned rank;
  std::string reason;

  [[nodiscard]] std::uint32_t send(RawClient& client) const {
    const std::string targets = std::to_string(rank);
    switch (kind) {
      case Kind::drain:
        return client.send("resource.drain",
                           {{"targets", targets}, {"reason", reason}, {"mode", "overwrite"}});
      case Kind::undrain:
        return client.send("resource.undrain", {{"targets", targets}, {"reason", reason}});
      case Kind::mark:
        return client.send("resource.property", {{"op", "add"}, {"name", "mark"}, {"targets", targets}});
      case Kind::unmark:
        break;
    }
    return client.send("resource.property", {{"op", "remove"}, {"name", "mark"}, {"targets", targets}});
  }

  void apply(Part& part) const {
    switch (kind) {
      case Kind::drain:
        part.drained[rank] = reason;
        break;
      case Kind::undrain:
        part.drained.erase(rank);
        break;
      case Kind::mark:
        part.marked.insert(rank);
        break;
      case Kind::unmark:
        part.marked.erase(rank);
        break;
    }
  }

  friend bool operator==(const Change&, const Change&) = default;
};

std::string to_text(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) {
    constexpr std::array names{"drain", "undrain", "mark", "unmark"};
    text += fmt::format("{} {} {}; ", names.at(static_cast<std::size_t>(change.kind)), change.rank,
                        change.reason);
  }
  return text;
}

Change read_change(const json& event) {
  const json& context = event.at("context");
  const auto rank_in = [](const json& idset) {
    const auto ranks = ids(idset.get<std::string>());
    REQUIRE(ranks.size() == 1);
    return *ranks.begin();
  };
  if (event["name"] == "property-update") {
    const bool add = context.contains("property-add");
    const json& properties = context.at(add ? "property-add" : "property-remove");
    return {add ? Change::Kind::mark : Change::Kind::unmark, rank_in(properties.at("mark")), ""};
  }
  const auto kind = event["name"] == "drain" ? Change::Kind::drain : Change::Kind::undrain;
  return {kind, rank_in(context.at("idset")), context.value("reason", "")};
}

Change random_change(std::mt19937& random, const Part& part, unsigned operator_number, std::string reason) {
  const auto rank = static_cast<unsigned>(operator_number * ranks_each + random() % ranks_each);
  switch (random() % 4) {
    case 0:
      return {part.marked.contains(rank) ? Change::Kind::unmark : Change::Kind::mark, rank, ""};
    case 1:
      if (part.drained.contains(rank)) return {Change::Kind::undrain, rank, std::move(reason)};
      [[fallthrough]];
    default:
      return {Change::Kind::drain, rank, std::move(reason)};
  }
}

struct Operator {
  explicit Operator(const std::string& uri) : client(std::in_place, uri) {}

  std::optional<RawClient> client;
  std::vector<Change> sent;
  std::vector<std::uint32_t> requests;
  std::size_t answered = 0;

  /// Takes answers, which come in the order of the requests.
  void take() {
    take_arrived(*client, [&](const RawResponse& response) {
      CHECK(response.errnum == 0);
      REQUIRE(answered < requests.size());
      CHECK(response.matchtag == requests[answered]);
      ++answered;
    });
  }
};

/// The changes between the last two starts, by operator, and the time of the last start.
struct Happened {
  std::array<std::vector<Change>, operators> changes;
  double started = 0;
};

Happened what_happened(RawClient& client, double since) {
  Happened happened;
  int starts = 0;
  for (const json& event : history(client, {{"since", since}})) {
    if (event["name"] == "truncate") continue;
    if (event["name"] == "restart") {
      ++starts;
      happened.started = event["timestamp"];
    } else if (event["name"] != "resource-define") {
      CHECK(starts == 1);
      const Change change = read_change(event);
      happened.changes.at(change.rank / ranks_each).push_back(change);
    }
  }
  CHECK(starts == 2);
  return happened;
}

/// Whether `up`, as a scheduler was told, is the state after some number of these changes.
bool is_a_past(const std::set<unsigned>& up, unsigned operator_number, Part part,
               const std::vector<Change>& changes) {
  const auto equals = [&] {
    for (unsigned rank = operator_number * ranks_each; rank < (operator_number + 1) * ranks_each; ++rank) {
      if (up.contains(rank) == part.drained.contains(rank)) return false;
    }
    return true;
  };
  if (equals()) return true;
  return std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
    change.apply(part);
    return equals();
  });
}

void check_state(RawClient& client, const std::array<Part, operators>& parts) {
  const json status = client.call("resource.status").json();
  std::map<unsigned, std::string> drained;
  for (const auto& [targets, why] : status["drain"].items()) {
    for (const unsigned rank : ids(targets)) drained[rank] = why["reason"];
  }
  std::map<unsigned, std::string> expected;
  std::set<unsigned> marked;
  for (const Part& part : parts) {
    expected.insert(part.drained.begin(), part.drained.end());
    marked.insert(part.marked.begin(), part.marked.end());
  }
  CHECK(drained == expected);

  SchedulerView view;
  const json first = client.receive(client.acquire()).json();
  view.apply(first);
  CHECK(view.targets().size() == operators * ranks_each);
  for (const unsigned rank : view.targets()) CHECK(view.up().contains(rank) != drained.contains(rank));
  const json& execution = first["resources"]["execution"];
  const json properties = execution.value("properties", json::object());
  CHECK(ids(properties.value("mark", "")) == marked);
  CHECK(status["R"]["execution"].value("properties", json::object()) == properties);
}

TEST_SUITE_BEGIN("faults");

TEST_CASE("kill -9 under load, again and again: nothing answered is lost, nothing is applied twice") {
  const int rounds = test::thorough(200, 40);
  constexpr unsigned seed = 200;
  CAPTURE(seed);
  std::mt19937 random(seed);
  TempDir dir;
  Daemon daemon(dir, {.config = operators_nodes});
  double started = 0;
  std::array<Part, operators> parts;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    RawClient scheduler(daemon.uri());
    SchedulerView view;
    view.apply(scheduler.receive(scheduler.acquire()).json());

    std::vector<std::unique_ptr<Operator>> crowd;
    for (unsigned number = 0; number < operators; ++number) {
      Operator& one = *crowd.emplace_back(std::make_unique<Operator>(daemon.uri()));
      Part ahead = parts[number];
      for (unsigned i = 0; i < requests_each; ++i) {
        one.sent.push_back(random_change(random, ahead, number, fmt::format("{}.{}.{}", round, number, i)));
        one.sent.back().apply(ahead);
        one.requests.push_back(one.sent.back().send(*one.client));
      }
    }
    const std::size_t enough = random() % (operators * requests_each + 1);
    const auto answered = [&] {
      std::size_t sum = 0;
      for (const auto& one : crowd) sum += one->answered;
      return sum;
    };
    const Deadline deadline;
    while (answered() < enough) {
      REQUIRE_FALSE(deadline.passed());
      for (const auto& one : crowd) one->take();
    }
    daemon.kill();
    for (const auto& one : crowd) {
      one->take();
      // Close the socket, which would send the remaining requests to the next daemon.
      one->client.reset();
    }
    take_arrived(scheduler, [&](const RawResponse& response) { view.apply(response.json()); });

    daemon.start();
    RawClient client(daemon.uri());
    const Happened happened = what_happened(client, started);
    started = happened.started;
    for (unsigned number = 0; number < operators; ++number) {
      const Operator& one = *crowd[number];
      const std::vector<Change>& kept = happened.changes[number];
      CAPTURE(to_text(one.sent));
      CAPTURE(to_text(kept));
      CHECK(kept.size() >= one.answered);
      REQUIRE(kept.size() <= one.sent.size());
      CHECK(std::equal(kept.begin(), kept.end(), one.sent.begin()));
      CHECK(is_a_past(view.up(), number, parts[number], kept));
      for (const Change& change : kept) change.apply(parts[number]);
    }
    check_state(client, parts);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
