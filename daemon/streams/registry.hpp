// The requests that the daemon has yet to answer (RFC 6), by client and matchtag, each with its stream: what
// the request waits for or holds. The caller that ends a request takes it out and releases its stream once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/module/actor.hpp"
#include "core/nodes/agent_roster.hpp"
#include "core/time.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::streams {

/// An acquire that waits for the inventory or its turn, and its parameters.
struct EarlyScheduler {
  std::optional<std::string> partition;
  bool allocations = false;
  /// The extensions that are granted; unset for a scheduler that asked for none.
  std::optional<module::Extensions> extensions = std::nullopt;
  /// The actor that sent the acquire.
  std::optional<module::Actor> by = std::nullopt;
  /// The request comes from the scheduler of a Flux instance, whose job manager reports its allocations.
  bool of_instance = false;
  /// The request waits its turn while another scheduler has the resources.
  bool wait = false;
  std::optional<Seconds> lease = std::nullopt;
  /// The token by which another connection may resume the acquisition; empty for none.
  std::string token = {};
  /// Numbers all acquires in the order in which they came.
  std::uint64_t number = 0;
  WallTime since{};
};

/// An acquire that holds resources.
struct Scheduler {
  engine::HolderId holder = 0;
  /// The number of the acquire (EarlyScheduler::number).
  std::uint64_t number = 0;
};

/// Consumers of the journal are numbered from 1, in the order in which they came.
using ConsumerId = std::uint64_t;

struct JournalConsumer {
  ConsumerId consumer = 0;
};

struct NodeAgent {
  nodes::AgentRoster::AgentId agent = 0;
};

/// A request that waits until this number of targets is online.
struct Waitup {
  std::size_t online = 0;
};

using CheckId = std::uint64_t;

/// A request for a check of a jobspec, which a thread makes.
struct FeasibilityCheck {
  CheckId check = 0;
};

/// A request to load a file, which a thread reads.
struct InventoryLoad {};

/// A resource.wait that waits for the states of targets.
struct StateWait {};

/// A resource.sched-status whose answer a thread encodes.
struct StatusQuery {};

/// A request that waits for the log's answer about the past.
struct PastQuery {};

/// A request that waits for etcd's answer about the members of the cluster.
struct ClusterQuery {};

/// The object that a request waits for or holds; monostate until its handler has called set().
using Stream = std::variant<std::monostate, EarlyScheduler, Scheduler, JournalConsumer, NodeAgent, Waitup,
                            FeasibilityCheck, InventoryLoad, StateWait, StatusQuery, PastQuery, ClusterQuery>;

class Registry {
 public:
  struct Entry {
    /// The request without its payload: responses need only topic, matchtag, routes, credentials and flags.
    proto::Message request;
    Stream stream;
  };

  /// Throws Error EPROTO if the client has a pending request with the matchtag of this one, of whatever
  /// topic: the client could not tell the responses apart.
  void require_unused(proto::ClientId client, const proto::Message& request) const;
  /// Keeps a request until it is taken. Throws Error EPROTO like require_unused(), or if the client wants no
  /// response.
  proto::RequestKey add(proto::ClientId client, const proto::Message& request);
  /// Sets the stream of a request. Ignores a request that was taken meanwhile.
  void set(proto::RequestKey key, const Stream& stream);

  /// Returns a pending request and its stream, or null. Valid until the request is taken.
  [[nodiscard]] const Entry* find(proto::RequestKey key) const noexcept;
  /// Returns a pending request alone, or null.
  [[nodiscard]] const proto::Message* request(proto::RequestKey key) const noexcept;

  /// Ends a request: the caller visits its stream and sends the last response, or none.
  std::optional<Entry> take(proto::RequestKey key);
  /// Ends the request that a SERVICE.METHOD-cancel of this client names: a request of the same topic, with
  /// the matchtag of the payload. Returns nothing if there is none. Throws Error EPROTO if `cancel` is not a
  /// cancellation or does not parse.
  std::optional<Entry> take_cancelled(proto::ClientId client, const proto::Message& cancel);
  /// Ends all pending requests of a client, by matchtag.
  std::vector<Entry> take_client(proto::ClientId client);

  /// Returns the pending requests of a topic, by client and matchtag.
  [[nodiscard]] std::vector<proto::RequestKey> with_topic(std::string_view topic) const;
  /// Calls `visit` with the stream of each pending request of a client, by matchtag.
  template <typename Visit>
  void for_each(proto::ClientId client, const Visit& visit) const {
    for (auto entry = entries_.lower_bound({client, 0});
         entry != entries_.end() && entry->first.client == client; ++entry) {
      visit(entry->second.stream);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t count(proto::ClientId client) const noexcept;

 private:
  using Entries = std::map<proto::RequestKey, Entry>;

  Entry extract(Entries::iterator position);

  Entries entries_;
  std::map<std::string, std::set<proto::RequestKey>, std::less<>> by_topic_;
  std::map<proto::ClientId, std::size_t> counts_;
};

}  // namespace resourced::daemon::streams
