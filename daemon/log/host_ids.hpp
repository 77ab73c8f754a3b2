// Numbers for the hosts that the event log knows. The hosts of an event are stored as an idset of these
// numbers: a few bytes for all hosts of a cluster, and searched without expansion. A host has the same number
// for as long as the store lives. The store's threads share one object.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::daemon::log {

class HostIds {
 public:
  using Id = text::IdSet::Id;

  /// Adds a new host that was read from the store. Ids are given in order from 0.
  void add(std::string_view host);

  struct Numbered {
    text::IdSet ids;
    /// New hosts, in the order of their ids, which follow all earlier ones.
    std::vector<std::string> added;
  };
  /// Returns the numbers of hosts, and gives new hosts a number.
  [[nodiscard]] Numbered number(const text::Hostlist& hosts);

  [[nodiscard]] std::optional<Id> find(std::string_view host) const;
  /// Returns the numbers of those hosts that have one.
  [[nodiscard]] text::IdSet find(const text::Hostlist& hosts) const;
  [[nodiscard]] std::size_t size() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  /// Gives a new host the next number. Called with the mutex, as is look_up().
  Id insert(std::string_view host);
  /// Returns the number of a host. It costs a fifth where `guess` is right: mostly it is the number after
  /// that of the host before, as lists and numbers tend to have the same order.
  [[nodiscard]] std::optional<Id> look_up(std::string_view host, Id guess) const;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Id, Hash, std::equal_to<>> ids_;
  /// The key in `ids_` of each number.
  std::vector<const std::string*> names_;
};

}  // namespace resourced::daemon::log
