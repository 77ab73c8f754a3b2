// Counts nodes, cores and gpus by partition and state, and measures how long nodes were unavailable or
// draining. Each event updates the counts of its targets only, and a reader pays for partitions and states
// only. A definition of the inventory counts all targets anew.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/engine/record.hpp"
#include "core/module/acquisition.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/histogram.hpp"
#include "daemon/service/reason_classes.hpp"

namespace resourced::daemon::service {

class NodeCounts {
 public:
  /// States are flags: a target can have several.
  enum State : std::uint8_t { up, allocated, draining, drained, offline, torpid, excluded };
  static constexpr std::size_t states = 7;
  static constexpr std::array<std::string_view, states> names{"up",      "allocated", "draining", "drained",
                                                              "offline", "torpid",    "excluded"};

  struct Counts {
    std::uint64_t nodes = 0;
    std::uint64_t cores = 0;
    std::uint64_t gpus = 0;
  };
  struct Part {
    std::string partition;  ///< "" for targets in no partition
    Counts all;
    /// Cores and gpus: in the state `allocated` those that are allocated, in other states all of the node.
    std::array<Counts, states> of;
  };

  NodeCounts(const Committed& committed, const module::Acquisition& acquisition);

  /// Counts an event that has just been applied to the committed state.
  void add(const engine::Record& record);

  /// Returns the counts by partition, first those of the targets in no partition.
  [[nodiscard]] const std::vector<Part>& parts();
  /// Returns the drained targets by the class of their reason.
  [[nodiscard]] const ReasonClasses& drain_classes() {
    (void)parts();
    return drain_classes_;
  }
  /// Returns how many targets had an event, by its name; a drain of eight targets counts as eight.
  [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& transitions() const noexcept {
    return transitions_;
  }
  /// Times until unavailable targets were available again, and from a drain of an allocated target until
  /// nothing was allocated there. They begin at the start of the daemon at the earliest.
  [[nodiscard]] const Histogram& unavailable() const noexcept { return unavailable_; }
  [[nodiscard]] const Histogram& drained_after() const noexcept { return draining_; }

  /// Calls visit(partition, flags) for each target, in the order of ranks. Costs by the number of targets.
  template <class Visit>
  void for_each(const Visit& visit) {
    (void)parts();
    state().inventory.ranks().for_each([&](text::IdSet::Id rank) {
      const Node& node = nodes_[rank];
      visit(std::string_view(parts_[node.part].partition), node.flags);
    });
  }

 private:
  struct Node {
    std::uint8_t flags = 0;
    /// Flags that refresh() collects.
    std::uint8_t next = 0;
    bool is_known = false;
    ReasonClasses::Index drain_class = ReasonClasses::no_class;
    std::uint32_t part = 0;
    std::uint32_t cores = 0;
    std::uint32_t gpus = 0;
    /// Number of allocated cores and gpus.
    std::uint32_t held_cores = 0;
    std::uint32_t held_gpus = 0;
    /// Times when the node became unavailable and began to drain; meaningful in these states only.
    WallTime down_since{};
    WallTime draining_since{};
  };
  /// Nodes by rank. Ranks can have gaps of any size.
  class Nodes {
   public:
    Node& operator[](text::IdSet::Id rank);
    void forget() {
      pages_.clear();
      last_page_ = nullptr;
    }

   private:
    static constexpr text::IdSet::Id page_size = 1024;
    using Page = std::array<Node, page_size>;
    std::unordered_map<text::IdSet::Id, std::unique_ptr<Page>> pages_;
    text::IdSet::Id last_ = 0;
    Page* last_page_ = nullptr;
  };

  [[nodiscard]] const module::State& state() const noexcept { return committed_.state(); }
  void recount(WallTime now);
  /// Follows a change of the inventory in place, for the targets that it concerns.
  void follow_update(const engine::Record& record);
  void place(text::IdSet::Id rank, std::uint32_t part);
  /// Returns the index in parts_ of a target's partition.
  [[nodiscard]] std::uint32_t part_of(text::IdSet::Id rank) const;
  /// Adds or removes the resources of an allocation.
  void hold(const rset::ResourceSet& resources, bool adds);
  /// Reads the present states of these targets. `changing` has the flags of the states that may differ from
  /// before.
  void refresh(const text::IdSet& ranks, WallTime now, std::uint8_t changing);
  void take_next(Node& node, WallTime now);
  void count(const Node& node, bool adds);
  void set_class(Node& node, ReasonClasses::Index drain_class);
  void forget();

  const Committed& committed_;
  const module::Acquisition& acquisition_;
  Nodes nodes_;
  std::vector<Part> parts_;
  ReasonClasses drain_classes_;
  std::uint64_t inventory_version_ = ~std::uint64_t{0};
  WallTime last_{};
  std::map<std::string, std::uint64_t, std::less<>> transitions_;
  Histogram unavailable_;
  Histogram draining_;
};

}  // namespace resourced::daemon::service
