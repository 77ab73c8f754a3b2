#include "target.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// Topics whose answer does not change while the state does not.
constexpr std::array readable{"resource.status", "resource.sched-status", "resource.get", "config.get"};

/// Allowed growth, in MiB and as a ratio, for pools and fragmentation. A leak of a kibibyte per connection
/// would exceed it.
constexpr double most_growth = 4;
constexpr double most_share = 1.5;

#if defined(RESOURCED_SANITIZED)
// AddressSanitizer keeps freed memory for a while, to detect its use.
constexpr bool judges_memory = false;
#else
constexpr bool judges_memory = true;
#endif

}  // namespace

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoul(value);
}

Target::Target(const std::string& limits)
    : daemon_(dir_, {.config = configuration(limits),
                     .listen = {"ipc://" + (dir_ / "bus").string(), "local://" + (dir_ / "local").string(),
                                "tcp://127.0.0.1:*"}}),
      owner_(std::make_unique<RawClient>(bus())) {}

Target::~Target() {
  const int status = daemon_.terminate();
  CAPTURE(daemon_.log());
  CHECK(status == 0);
}

std::string Target::configuration(const std::string& limits) const {
  std::filesystem::permissions(dir_.path(), std::filesystem::perms(0755));
  const json server{
      {"name", "server"}, {"public-key", server_.public_key}, {"secret-key", server_.secret_key}};
  const auto key_file = dir_.write("server.key", server.dump());
  std::filesystem::permissions(key_file, std::filesystem::perms(0600));
  std::string text =
      fmt::format("[resource]\njournal-max = 1000\n{}[bus]\ncurve-key-file = \"{}\"\n[limits]\n{}",
                  eight_nodes, key_file, limits);
  for (const auto& [role, keys] : clients_) {
    text += fmt::format("[[access.key]]\nname = \"{0}\"\npublic-key = \"{1}\"\nroles = [\"{0}\"]\n", role,
                        keys.public_key);
  }
  return text;
}

const KeyPair& Target::keys(const std::string& role) const {
  return std::ranges::find(clients_, role, &std::pair<std::string, KeyPair>::first)->second;
}

json Target::answers() {
  // Reads show what is on disk. The answer to a change comes after all changes before it are there, also when
  // it is refused.
  REQUIRE(owner_->call("resource.drain", json{{"targets", "nobody"}}).errnum == unsigned{EINVAL});
  json all = json::object();
  for (const char* topic : readable) all[topic] = owner_->call(topic).json();
  return all;
}

json Target::stats() { return owner_->call("resource.stats-get").json(); }

void Target::restart() {
  CHECK(daemon_.terminate() == 0);
  daemon_.start();
  owner_ = std::make_unique<RawClient>(bus());
}

std::size_t Target::descriptors() {
  const std::filesystem::directory_iterator open(fmt::format("/proc/{}/fd", daemon_.process().pid()));
  return static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

// The daemon notices the end of a connection with a delay.
Target::Vitals Target::settled(std::size_t wanted) {
  const Deadline deadline;
  Vitals vitals;
  do {
    vitals.mebibytes = stats()["memory"].get<double>() / (1 << 20);
    vitals.descriptors = descriptors();
  } while (vitals.descriptors > wanted && !deadline.passed());
  return vitals;
}

void Target::survives(const char* what, const std::function<void()>& abuse, int times) {
  const json before = answers();
  const Vitals start = settled(descriptors());
  fmt::print("{}: {} descriptors, {:.1f} MiB", what, start.descriptors, start.mebibytes);
  Vitals last = start;
  double most = 0;
  for (int i = 0; i < times; ++i) {
    most = std::max(most, last.mebibytes);
    const auto begin = std::chrono::steady_clock::now();
    abuse();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    last = settled(start.descriptors);
    fmt::print("; after {:.1f} s {}, {:.1f} MiB", took.count(), last.descriptors, last.mebibytes);
  }
  fmt::print("\n");
  // There may be fewer: connections of an earlier test may still have been open at the start.
  CHECK(last.descriptors <= start.descriptors);
  // The heap that is kept after a round depends on the order in which objects end, but a leak grows in each
  // round.
  if (judges_memory) CHECK(last.mebibytes <= most * most_share + most_growth);
  CHECK(answers() == before);
}

}  // namespace resourced::e2e
