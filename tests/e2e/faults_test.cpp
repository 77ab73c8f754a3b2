// Faults that are made to happen for real: kill -9 under load, a full disk, a damaged store, and a scheduler
// that has stopped. What was answered or told is kept whatever happens, and nothing is applied twice.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "fixture.hpp"
#include "thorough.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr unsigned operators = 4;
constexpr unsigned ranks_each = 6;
constexpr unsigned requests_each = 10;

const std::string operators_nodes =
    fmt::format("[[resource.config]]\nhosts = \"node[0-{}]\"\ncores = \"0-3\"\n", operators* ranks_each - 1);

/// What is known of the ranks of one operator, who has them alone.
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

  /// Answers come in the order of the requests.
  void take() {
    take_arrived(*client, [&](const RawResponse& response) {
      CHECK(response.errnum == 0);
      REQUIRE(answered < requests.size());
      CHECK(response.matchtag == requests[answered]);
      ++answered;
    });
  }
};

/// The changes since the last start but one, by operator, and when the last start was.
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

/// Whether a scheduler that was told of `up` knows the state after some of these changes and no more.
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

class Mount {
 public:
  /// Whether it worked is told by mounted(): it takes rights that not everybody has.
  Mount(std::filesystem::path where, const char* options) : where_(std::move(where)) {
    std::filesystem::create_directories(where_);
    mounted_ = ::mount("tmpfs", where_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~Mount() {
    if (mounted_) ::umount2(where_.c_str(), MNT_DETACH);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::filesystem::path where_;
  bool mounted_ = false;
};

void fill_disk(const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary);
  const std::string page(4096, 'x');
  while (out.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
  }
}

/// Exchanges bytes in a file, and returns what is in it afterwards.
std::string overwrite(const std::filesystem::path& file, std::size_t place, std::size_t size) {
  std::string bytes = read_file(file);
  REQUIRE(bytes.size() >= place + size);
  for (std::size_t i = place; i < place + size; ++i) bytes[i] = static_cast<char>(~bytes[i]);
  std::ofstream(file, std::ios::binary) << bytes;
  return bytes;
}

std::uint64_t memory(RawClient& client) { return client.call("resource.stats-get").json().at("memory"); }

/// Drains all of the first `count` ranks one by one, then undrains them, and so on: `changes` requests, of
/// which some hundred are under way at any time.
void churn(RawClient& client, unsigned count, unsigned changes) {
  constexpr unsigned window = 256;
  const auto take = [&] { REQUIRE(client.receive().errnum == 0); };
  for (unsigned i = 0; i < changes; ++i) {
    if (i >= window) take();
    const char* topic = i / count % 2 == 0 ? "resource.drain" : "resource.undrain";
    client.send(topic, {{"targets", std::to_string(i % count)}});
  }
  for (unsigned i = 0; i < std::min(window, changes); ++i) take();
}

/// The median time of a drain or undrain of one rank by a client that waits for each answer.
/// Where a commit takes the same time however much was written before; the usual place if there is none.
std::filesystem::path even_disk() {
  const std::filesystem::path memory("/dev/shm");
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::path();
}

Clock::duration service_time(RawClient& client, const std::string& rank) {
  constexpr std::size_t calls = 100;
  std::vector<Clock::duration> times;
  for (std::size_t i = 0; i < calls; ++i) {
    const auto sent = Clock::now();
    CHECK(client.call(i % 2 == 0 ? "resource.drain" : "resource.undrain", {{"targets", rank}}).errnum == 0);
    times.push_back(Clock::now() - sent);
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[calls / 2];
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
      // A socket that lives on would send what is left of its requests to the next daemon.
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

TEST_CASE(
    "a full disk: the refused operator is told, the daemon ends, and what was answered is there later") {
  constexpr std::uint32_t no_space = 28;
  TempDir dir;
  const Mount small(dir / "state", "size=2m");
  if (!small.mounted()) {
    MESSAGE("skipped: this user may not mount a small file system");
    return;
  }
  Daemon daemon(dir, {.config = "[[resource.config]]\nhosts = \"node[0-1023]\"\ncores = \"0-3\"\n"});
  RawClient scheduler(daemon.uri());
  const std::uint32_t stream = scheduler.acquire();
  scheduler.receive(stream);

  RawClient client(daemon.uri());
  std::set<unsigned> answered;
  const auto drain = [&](unsigned rank) {
    return client.call("resource.drain", {{"targets", std::to_string(rank)}, {"reason", "kept"}});
  };
  for (; answered.size() < 10; answered.insert(static_cast<unsigned>(answered.size()))) {
    CHECK(drain(static_cast<unsigned>(answered.size())).errnum == 0);
  }
  fill_disk(dir / "state/filler");
  std::uint32_t refused = 0;
  while (refused == 0 && answered.size() < 1024) {
    const auto rank = static_cast<unsigned>(answered.size());
    const RawResponse response = drain(rank);
    refused = response.errnum;
    if (refused == 0) {
      answered.insert(rank);
    } else {
      CHECK(response.text().find("resourced.sqlite") != std::string::npos);
    }
  }
  CHECK(refused == no_space);
  CHECK(daemon.process().wait() == 1);
  CHECK(daemon.log().find("resourced.sqlite") != std::string::npos);

  SchedulerView view;
  std::filesystem::remove(dir / "state/filler");
  daemon.start();
  RawClient again(daemon.uri());
  const json status = again.call("resource.status").json();
  CHECK(drained_ranks(status) == answered);
  view.apply(again.receive(again.acquire()).json());
  for (const unsigned rank : view.targets()) CHECK(view.up().contains(rank) != answered.contains(rank));
  CHECK(again.call("resource.drain", {{"targets", "1023"}}).errnum == 0);
}

TEST_CASE("a store that reaches the limit of a file's size ends the daemon as a full disk does") {
  const TempDir dir;
  Daemon daemon(dir, {.config = "[[resource.config]]\nhosts = \"node[0-7]\"\ncores = \"0-3\"\n"});
  RawClient client(daemon.uri());
  CHECK(client.call("resource.drain", {{"targets", "1"}}).errnum == 0);
  const rlimit none{0, RLIM_INFINITY};
  REQUIRE(::prlimit(daemon.process().pid(), RLIMIT_FSIZE, &none, nullptr) == 0);
  const RawResponse refused = client.call("resource.drain", {{"targets", "2"}});
  CHECK(refused.errnum != 0);
  CHECK(refused.text().find("resourced.sqlite") != std::string::npos);
  CHECK(daemon.process().wait() == 1);
  daemon.start();
  CHECK(drained_ranks(RawClient(daemon.uri()).call("resource.status").json()) == std::set<unsigned>{1});
}

TEST_CASE("a damaged store is refused with its name and what to do, and is not touched") {
  constexpr std::size_t page = 4096;
  struct Case {
    const char* what;
    std::size_t place;
    std::size_t size;
  };
  for (const Case& damage : {Case{"the header", 0, 100}, Case{"the schema", 100, page - 100},
                             Case{"all but the first page", page, 0},
                             Case{"what is written to at a start", 2 * page, 0}, Case{"all of it", 0, 0}}) {
    CAPTURE(damage.what);
    Cluster cluster;
    cluster.drain("1-3", "kept");
    REQUIRE(cluster.daemon.terminate() == 0);
    const std::filesystem::path store = cluster.dir / "state/resourced.sqlite";
    const std::string good = read_file(store);
    const std::size_t size = damage.size == 0 ? good.size() - damage.place : damage.size;
    const std::string bad = overwrite(store, damage.place, size);

    const Outcome outcome =
        Process(resourced_command({"--config", cluster.daemon.config_file(), "--state", cluster.dir / "state",
                                   "--listen", "ipc://" + (cluster.dir / "bus").string()}))
            .finish();
    CAPTURE(outcome.err);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.err.find(store.string()) != std::string::npos);
    CHECK(outcome.err.find("backup") != std::string::npos);
    CHECK(outcome.err.find("move it away") != std::string::npos);
    CHECK(read_file(store) == bad);

    // The operator restores a copy, and all is as it was.
    std::ofstream(store, std::ios::binary) << good;
    cluster.daemon.start();
    CHECK(drained_ranks(cluster.status()) == ids("1-3"));
  }
}

TEST_CASE("a stopped scheduler costs nobody anything, and is told one net change when it goes on") {
  constexpr unsigned churned = 1000;
  const unsigned changes = test::thorough(100000U, 20000U);
  constexpr std::uint64_t flat = 8U << 20;
  Cluster cluster(
      "[resource]\njournal-max = 1000\n[bus]\nsend-hwm = 2\nheartbeat-timeout = \"10m\"\n"
      "[[resource.config]]\nhosts = \"node[0-1023]\"\ncores = \"0-3\"\n",
      even_disk());
  RawClient other(cluster.daemon.uri());

  const auto scheduler = cluster.ctl.start({"acquire"});
  SchedulerView view;
  view.apply(json::parse(scheduler->expect_line()));
  const auto before = service_time(other, "1001");
  for (int i = 0; i < 100; ++i) view.apply(json::parse(scheduler->expect_line()));

  scheduler->signal(SIGSTOP);
  churn(cluster.operator_client, churned, 4 * churned);
  const std::uint64_t memory_before = memory(other);
  const auto begun = Clock::now();
  churn(cluster.operator_client, churned, changes);
  const auto busy = Clock::now() - begun;
  auto after = service_time(other, "1002");
  // Once as fast is enough, as the machine may have had something else to do.
  for (int again = 0; again < 4 && after >= 4 * before; ++again) after = service_time(other, "1002");
  const std::uint64_t memory_after = memory(other);
  cluster.drain("3,5-7,1001-1022");
  cluster.drain("1023");
  const json status = cluster.status();

  scheduler->signal(SIGCONT);
  int responses = 0;
  for (; view.up().contains(1023); ++responses) view.apply(json::parse(scheduler->expect_line()));
  std::set<unsigned> available = view.targets();
  for (const unsigned rank : drained_ranks(status)) available.erase(rank);
  CHECK(view.up() == available);
  // What was in the pipe when it stopped is not called back.
  CHECK(responses < static_cast<int>(changes / 20));
  CHECK(memory_after < memory_before + flat);
  CHECK(after < 4 * before);
  MESSAGE(
      fmt::format("{} changes in {:.0f} ms; {} responses for them; memory {} KiB before, {} KiB after; a "
                  "change took {:.2f} "
                  "ms before, {:.2f} ms after",
                  changes, milliseconds(busy), responses, memory_before >> 10, memory_after >> 10,
                  milliseconds(before), milliseconds(after)));
  // It lives on, with nothing left over.
  cluster.undrain("1023");
  CHECK(json::parse(scheduler->expect_line()) == json{{"up", "1023"}});
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
