// resource.journal (RFC 44): the event log as streams. A consumer is a position in the log: what it has not
// read costs nothing but that, and events are encoded once for all who read the same stretch. Recent events
// are kept in memory, older ones are read from the store a page at a time. Only what is on disk is ever
// shown.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/module/module.hpp"
#include "daemon/clients.hpp"
#include "daemon/journal_source.hpp"
#include "daemon/store.hpp"
#include "proto/request_table.hpp"

namespace resourced::daemon {

class Journal {
 public:
  /// How many events one response holds at the most.
  static constexpr std::size_t batch = 1000;

  /// `requests` has the request of each consumer for as long as it is one. `most` is journal-max.
  Journal(Clients& clients, const proto::RequestTable& requests, Store& store, const Module& module,
          std::size_t most);

  /// An event that was applied. Sequences come in order without gaps.
  void append(LoggedEvent event, IdSet ranks);
  /// All events up to this one are on disk.
  void committed(Sequence last) noexcept { committed_ = last; }
  void set_most(std::size_t most);

  void set_most_consumers(std::size_t most) noexcept { most_consumers_ = most; }

  /// `follower` names who asks. Throws Error EBUSY if it follows too many journals already.
  void add(proto::RequestKey request, EventFilter filter, const std::string& follower);
  void remove(proto::RequestKey request);
  /// Whether somebody had no room for what there was.
  [[nodiscard]] bool blocked() const noexcept { return blocked_; }
  [[nodiscard]] std::size_t consumers() const noexcept { return consumers_.size(); }

  struct Casualties {
    /// Clients that turned out to be gone.
    std::vector<ClientId> gone;
    /// Streams that are over: their consumer did not read while more happened than is kept in memory, or
    /// asked for a host of which nothing is known.
    std::vector<std::pair<proto::RequestKey, Error>> ended;
  };
  /// Gives consumers what there is and what they can take.
  [[nodiscard]] Casualties flush();

 private:
  struct Entry {
    LoggedEvent event;
    IdSet ranks;
  };
  struct Consumer {
    std::uint64_t id = 0;
    std::string follower;
    EventFilter filter;
    Sequence next = 0;
    /// A question to the store is under way.
    bool waiting = true;
    /// History and sentinel are behind it.
    bool live = false;
    /// Made from the store, and not sent yet for want of room.
    proto::Payload held;
    std::optional<std::string> unknown_host;
  };
  /// The stretch that was encoded last, which the next consumer most likely wants too.
  struct Encoded {
    Sequence first = 0;
    Sequence next = 0;
    std::uint64_t inventory_version = 0;
    proto::Payload payload;
  };
  enum class Progress { idle, full, gone, overrun, misled };

  [[nodiscard]] Sequence first_in_memory() const noexcept;
  void trim();
  Progress advance(proto::RequestKey key, Consumer& consumer);
  void ask_store(proto::RequestKey key, Consumer& consumer);
  [[nodiscard]] proto::Payload from_memory(Consumer& consumer);
  [[nodiscard]] proto::Payload encode(const std::vector<const LoggedEvent*>& events);
  SendResult send(proto::RequestKey key, const proto::Payload& payload);
  Consumer* find(proto::RequestKey key, std::uint64_t id);

  Clients& clients_;
  const proto::RequestTable& requests_;
  Store& store_;
  const Module& module_;
  std::size_t most_;
  Sequence committed_ = 0;
  Sequence next_sequence_ = 0;
  std::deque<Entry> entries_;
  std::map<proto::RequestKey, Consumer> consumers_;
  std::map<std::string, std::size_t, std::less<>> followed_;
  std::size_t most_consumers_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t last_id_ = 0;
  bool blocked_ = false;
  Encoded encoded_;
};

}  // namespace resourced::daemon
