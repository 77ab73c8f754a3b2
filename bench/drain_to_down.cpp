// How long it takes from an operator's drain to the `down` at the scheduler, through the real daemon, for
// clusters of several sizes, against what this machine does at best in the same minute: a bare ROUTER/DEALER
// round trip between two processes, and a bare append with fdatasync on the disk that holds the daemon's
// state.
//
// The bar: drain to down takes at most three times (round trip + append), and no longer on a large cluster
// than on a small one. Rounds of all measurements take turns, so that a disturbance of the machine meets them
// all.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zmq.h>

#include "harness/daemon.hpp"
#include "harness/raw_client.hpp"

namespace resourced::e2e {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr double ratio_bar = 3.0;
constexpr std::array<unsigned, 3> cluster_sizes{1000, 16384, 131072};

constexpr const char* usage =
    "usage: drain_to_down [--quick] [--directory DIR]\n"
    "  --quick          fewer rounds; fails only if the time grows with the size of the cluster\n"
    "  --directory DIR  where state and sockets go (default: the working directory)\n";

struct Plan {
  int turns = 100;
  int rounds_a_turn = 5;
  /// The largest cluster may take this much longer than the smallest: room for noise, far below any linear
  /// cost.
  double growth_bar = 1.5;
  bool hold_ratio = true;
  std::string directory = ".";
};

class Samples {
 public:
  template <typename Work>
  void measure(const Work& work) {
    const auto start = Clock::now();
    work();
    add(Clock::now() - start);
  }
  void add(Clock::duration time) { times_.push_back(Microseconds(time).count()); }

  [[nodiscard]] double percentile(std::size_t percent) const {
    auto sorted = times_;
    const auto place = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) * percent / 100);
    std::nth_element(sorted.begin(), place, sorted.end());
    return *place;
  }
  [[nodiscard]] double median() const { return percentile(50); }
  /// What is left when the disk answers at once: a cost that grows with the cluster shows here first.
  [[nodiscard]] double undisturbed() const { return percentile(10); }

 private:
  std::vector<double> times_;
};

/// Sends every message back, until it is killed.
[[noreturn]] void echo(const char* uri) {
  void* context = ::zmq_ctx_new();
  void* router = ::zmq_socket(context, ZMQ_ROUTER);
  if (::zmq_bind(router, uri) != 0) throw std::runtime_error(::zmq_strerror(::zmq_errno()));
  std::puts("ready");
  std::fflush(stdout);
  while (true) {
    zmq_msg_t part;
    ::zmq_msg_init(&part);
    ::zmq_msg_recv(&part, router, 0);
    const int more = ::zmq_msg_more(&part) != 0 ? ZMQ_SNDMORE : 0;
    ::zmq_msg_send(&part, router, more);
  }
}

/// The bare round trip, with parts of the sizes that a drain has.
class RoundTrip {
 public:
  RoundTrip(const TempDir& dir, const std::string& self)
      : uri_("ipc://" + (dir / "echo").string()),
        echo_({self, "--echo", uri_}),
        context_(::zmq_ctx_new()),
        dealer_(::zmq_socket(context_, ZMQ_DEALER)) {
    echo_.expect_line();
    const int linger = 0;
    ::zmq_setsockopt(dealer_, ZMQ_LINGER, &linger, sizeof(linger));
    if (::zmq_connect(dealer_, uri_.c_str()) != 0) throw std::runtime_error(::zmq_strerror(::zmq_errno()));
  }
  ~RoundTrip() {
    ::zmq_close(dealer_);
    ::zmq_ctx_term(context_);
  }
  RoundTrip(const RoundTrip&) = delete;
  RoundTrip& operator=(const RoundTrip&) = delete;

  void once() {
    const std::array<std::string_view, 4> parts{
        "", "resource.drain", R"({"targets":"12345","reason":"measured"})", "twenty bytes of PROT"};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int more = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
      ::zmq_send(dealer_, parts[i].data(), parts[i].size(), more);
    }
    std::array<char, 256> buffer;
    for (std::size_t i = 0; i < parts.size(); ++i) ::zmq_recv(dealer_, buffer.data(), buffer.size(), 0);
  }

 private:
  std::string uri_;
  Process echo_;
  void* context_;
  void* dealer_;
};

/// The bare commit: a block written and on the disk. Appended blocks make the file longer, so that the file
/// system has something to record as well; a store that uses its log's space again is spared that.
class Commit {
 public:
  Commit(const TempDir& dir, bool append)
      : append_(append), fd_(::open((dir / "block").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), (dir / "block").string());
  }
  ~Commit() { ::close(fd_); }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  void once() {
    static const std::string block(4096, 'x');
    if (::pwrite(fd_, block.data(), block.size(), place_) < 0 || ::fdatasync(fd_) != 0) {
      throw std::system_error(errno, std::generic_category(), "commit");
    }
    if (append_) place_ += static_cast<off_t>(block.size());
  }

 private:
  bool append_;
  int fd_;
  off_t place_ = 0;
};

/// A daemon with a scheduler that holds its resources and an operator.
class Cluster {
 public:
  Cluster(unsigned size, const std::string& directory)
      : size_(size),
        dir_(directory),
        daemon_(dir_, {.config = fmt::format(
                           "[[resource.config]]\nhosts = \"node[0-{}]\"\ncores = \"0-63\"\n", size - 1)}),
        scheduler_(daemon_.uri()),
        operator_(daemon_.uri()),
        stream_(scheduler_.acquire()) {
    succeed(scheduler_.receive(stream_));
  }

  [[nodiscard]] unsigned size() const { return size_; }
  [[nodiscard]] const Samples& samples() const { return samples_; }

  /// Drains one target, measured until the scheduler has heard of it, and returns it.
  void once() {
    constexpr unsigned stride = 7919;  // a prime: the targets lie all over the cluster
    next_ = (next_ + stride) % size_;
    const std::string target = std::to_string(next_);
    const auto start = Clock::now();
    const auto drain = operator_.send("resource.drain", {{"targets", target}, {"reason", "measured"}});
    const RawResponse down = scheduler_.receive(stream_);
    samples_.add(Clock::now() - start);
    expect(down, "down", target);
    succeed(operator_.receive(drain));
    succeed(operator_.call("resource.undrain", {{"targets", target}}));
    expect(scheduler_.receive(stream_), "up", target);
  }

 private:
  static void succeed(const RawResponse& response) {
    if (response.errnum != 0) throw std::runtime_error(response.text());
  }
  static void expect(const RawResponse& response, const char* key, const std::string& target) {
    if (response.json() != nlohmann::json{{key, target}})
      throw std::runtime_error("unexpected: " + response.payload);
  }

  unsigned size_;
  unsigned next_ = 0;
  TempDir dir_;
  Daemon daemon_;
  RawClient scheduler_;
  RawClient operator_;
  std::uint32_t stream_;
  Samples samples_;
};

int run(const Plan& plan, const std::string& self) {
  const TempDir dir(plan.directory);
  const TempDir other_dir(plan.directory);
  RoundTrip round_trip(dir, self);
  Commit append(dir, true);
  Commit overwrite(other_dir, false);
  Samples round_trips;
  Samples appends;
  Samples overwrites;
  std::vector<std::unique_ptr<Cluster>> clusters;
  for (const unsigned size : cluster_sizes)
    clusters.push_back(std::make_unique<Cluster>(size, plan.directory));

  for (int turn = 0; turn < plan.turns; ++turn) {
    for (int i = 0; i < plan.rounds_a_turn; ++i) round_trips.measure([&] { round_trip.once(); });
    for (int i = 0; i < plan.rounds_a_turn; ++i) appends.measure([&] { append.once(); });
    for (int i = 0; i < plan.rounds_a_turn; ++i) overwrites.measure([&] { overwrite.once(); });
    for (const auto& cluster : clusters) {
      for (int i = 0; i < plan.rounds_a_turn; ++i) cluster->once();
    }
  }

  fmt::print("{} rounds each, times in microseconds\n\n", plan.turns * plan.rounds_a_turn);
  fmt::print("{:<34}{:>10}{:>10}{:>10}{:>10}\n", "", "10%", "median", "90%", "ratio");
  const auto row = [](const std::string& name, const Samples& samples, const std::string& ratio) {
    fmt::print("{:<34}{:>10.0f}{:>10.0f}{:>10.0f}{:>10}\n", name, samples.undisturbed(), samples.median(),
               samples.percentile(90), ratio);
  };
  row("raw round trip, ROUTER/DEALER", round_trips, "");
  row("raw append + fdatasync", appends, "");
  row("raw overwrite + fdatasync", overwrites, "");
  const double best = round_trips.median() + appends.median();
  double worst_ratio = 0;
  for (const auto& cluster : clusters) {
    const double ratio = cluster->samples().median() / best;
    worst_ratio = std::max(worst_ratio, ratio);
    row(fmt::format("drain to down, {} targets", cluster->size()), cluster->samples(),
        fmt::format("{:.2f}", ratio));
  }
  const double growth = clusters.back()->samples().undisturbed() / clusters.front()->samples().undisturbed();
  fmt::print("\nratio to (round trip + append): at most {:.2f}, bar {:.1f}\n", worst_ratio, ratio_bar);
  fmt::print("growth from {} to {} targets, at 10%: {:.2f}, bar {:.1f}\n", cluster_sizes.front(),
             cluster_sizes.back(), growth, plan.growth_bar);

  const bool slow = plan.hold_ratio && worst_ratio > ratio_bar;
  const bool grows = growth > plan.growth_bar;
  if (slow) fmt::print("drain_to_down: too slow\n");
  if (grows) fmt::print("drain_to_down: the time grows with the cluster\n");
  return slow || grows ? 1 : 0;
}

}  // namespace
}  // namespace resourced::e2e

int main(int argc, char** argv) {
  using resourced::e2e::Plan;
  try {
    Plan plan;
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool more = i + 1 < arguments.size();
      if (arguments[i] == "--quick") {
        plan.turns = 20;
        plan.growth_bar = 2.5;
        plan.hold_ratio = false;
      } else if (arguments[i] == "--directory" && more) {
        plan.directory = arguments[++i];
      } else if (arguments[i] == "--echo" && more) {
        resourced::e2e::echo(arguments[i + 1].c_str());
      } else {
        const bool help = arguments[i] == "--help";
        fmt::print(help ? stdout : stderr, "{}", resourced::e2e::usage);
        return help ? 0 : 2;
      }
    }
    return resourced::e2e::run(plan, "/proc/self/exe");
  } catch (const std::exception& error) {
    fmt::print(stderr, "drain_to_down: {}\n", error.what());
    return 1;
  }
}
