// The clients of the simulated daemon, with the messages that they received and the state that they expect.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/time.hpp"
#include "daemon/transport/transport.hpp"
#include "reference.hpp"

namespace resourced::sim {

using proto::ClientId;

/// Messages on their way to clients. A client may stall or disconnect.
class SimTransport final : public daemon::transport::Transport {
 public:
  [[nodiscard]] std::string endpoint() const override { return "sim"; }
  daemon::transport::SendResult send(ClientId client, const proto::Message& message) override;
  void drop(ClientId client) override { gone.insert(client); }
  void stop_reading() override {}
  [[nodiscard]] std::size_t unsent() const override { return 0; }

  std::deque<std::pair<ClientId, proto::Message>> sent;
  std::set<ClientId> stalled;
  std::set<ClientId> gone;
};

/// The view that a scheduler has of its resources (RFC 28): the first response, and every change since.
struct View {
  Reference::Ranks resources;
  Reference::Ranks up;
  std::map<std::string, Reference::Ranks> properties;
  double expiration = 0;

  explicit View(const nlohmann::json& first);
  /// Throws std::runtime_error for a change that changes nothing, or of a target that the scheduler does not
  /// have.
  void apply(const nlohmann::json& delta);
};

/// The allocations that concern a scheduler with the extension `ledger`, as it knows them: from the first
/// response, what others have changed, and the answers to its own changes. An allocation keeps the targets
/// that leave for good.
struct LedgerView {
  /// The partition and id of an allocation.
  using Name = std::pair<std::string, std::string>;
  /// The ranks and cores of each allocation.
  using Cores = std::set<std::pair<unsigned, unsigned>>;
  std::map<Name, Cores> allocations;
  /// The notes of those that have one.
  std::map<Name, std::string> notes;
  /// When allocations should have been freed, and those of which it knows that this time has passed.
  Reference::Expirations expirations;
  std::set<Name> expired;

  /// Applies a response of the stream. Throws Violation if it calls an allocation expired whose time is after
  /// `latest`, the latest time that the clock has shown.
  void apply(const nlohmann::json& response, double latest);
  /// Applies a request of this scheduler for the ledger that was granted; `own` is its partition, and `asked`
  /// the time of the request.
  void apply_own(const nlohmann::json& request, const std::string& own, double asked);

 private:
  /// Adds the cores of an R to an allocation.
  void add(const nlohmann::json& resources, const Name& name);
  void take(const nlohmann::json& allocation, const Name& name);
  void free(const nlohmann::json& entry, const std::string& partition);
  void forget(const Name& name);
  void expire(const Name& name, double expiration, double now);
  void write(const Name& name, const std::string& note);
};

struct Scheduler {
  ClientId client{};
  std::uint32_t matchtag = 0;
  /// Empty for all targets that are in no partition.
  std::string partition;
  /// Another scheduler held the same targets at the time of the request, or waited for them, so this one is
  /// refused, or waits.
  bool is_second = false;
  bool waits = false;
  /// The number of the request among those of all schedulers.
  std::uint64_t turn = 0;
  /// The token of its acquisition; empty for none.
  std::string token;
  /// The time of the acquisition, if it has not waited for it.
  double since = 0;
  /// The errnum with which the daemon has ended it, whether it has heard of that or not: ECONNABORTED if an
  /// operator has evicted it or another connection has resumed its acquisition, ETIMEDOUT if its lease is
  /// over; 0 while it goes on.
  std::uint32_t ended = 0;
  /// It promises to send something in each such time; 0 if it promises nothing.
  Seconds lease{0};
  /// It sends nothing.
  bool hangs = false;
  /// When it has last sent something, as Simulation::awake() counts the time.
  Seconds heard{0};
  /// For how long the daemon may take to find that its lease is over.
  Seconds slack{1};
  /// The extensions that it has asked for and gets; unset if its request does not have that key. Its
  /// responses have numbers if it is set.
  std::optional<std::set<std::string>> extensions;
  [[nodiscard]] bool has(const std::string& extension) const {
    return extensions && extensions->contains(extension);
  }
  /// Set with the extension `ledger`.
  std::optional<LedgerView> ledger;
  /// With the extension `scheduled`: the scheduled drains of its targets.
  nlohmann::json scheduled = nlohmann::json::array();
  /// The number of the last response.
  std::uint64_t sequence = 0;
  /// The allocations of the first response go on in the next one.
  bool more = false;
  /// The last request that was answered.
  std::uint32_t answered = 0;
  std::optional<View> view;
  /// The view is the state after this event, or a later one.
  std::uint64_t seen = 0;
};

/// An acquisition that is kept for a scheduler whose connection is lost.
struct Kept {
  std::string token;
  /// Scheduler::since of that scheduler.
  double since = 0;
  SteadyTime until;
};

struct Consumer {
  ClientId client{};
  std::uint32_t matchtag = 0;
  /// The events that may come next, in order. More than one only where it begins after a truncate.
  std::vector<std::uint64_t> next{1};
};

struct Agent {
  ClientId client{};
  std::uint32_t matchtag = 0;
  std::string host;
  /// Its hello said that it runs checks, and no later agent has taken its place since.
  bool checks = false;
};

}  // namespace resourced::sim
