// Counts of nodes, cores and gpus by partition and state, and how long nodes were unavailable or draining.
// They follow the events: an event costs by the targets that it concerns, and a reader pays for partitions
// and states only. A definition of the inventory counts all targets anew.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/engine/record.hpp"
#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/service/histogram.hpp"

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
    std::string partition;  ///< "" for targets in none
    Counts all;
    /// Cores and gpus in the state `allocated` are those that are allocated, of the other states all of a
    /// node.
    std::array<Counts, states> of;
  };

  NodeCounts(const module::Module& module, const module::Acquisition& acquisition);

  /// An event that has been applied.
  void add(const engine::Record& record);

  /// The targets in no partition first.
  [[nodiscard]] const std::vector<Part>& parts();
  /// How many targets had an event, by its name; a drain of eight targets is eight.
  [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& transitions() const noexcept {
    return transitions_;
  }
  /// Times of targets that are available again; and of drained ones from the drain until nothing was
  /// allocated there. For what was so at the start of the daemon they begin there.
  [[nodiscard]] const Histogram& unavailable() const noexcept { return unavailable_; }
  [[nodiscard]] const Histogram& drained_after() const noexcept { return draining_; }

  using Visit = std::function<void(text::IdSet::Id rank, std::string_view partition, std::uint8_t flags)>;
  /// Each target, in the order of ranks. Costs by the number of targets.
  void for_each(const Visit& visit);

 private:
  struct Node {
    std::uint8_t flags = 0;
    /// Where refresh() collects the flags.
    std::uint8_t next = 0;
    bool is_known = false;
    std::uint32_t part = 0;
    std::uint32_t cores = 0;
    std::uint32_t gpus = 0;
    /// The cores and gpus that are allocated.
    std::uint32_t held_cores = 0;
    std::uint32_t held_gpus = 0;
    /// When it became unavailable, and when it began to drain; meaningful while it is so.
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

  void recount(WallTime now);
  /// Takes in a change of the inventory, by the targets that it concerns.
  void follow(const module::UpdateEvent& update);
  void place(text::IdSet::Id rank, std::uint32_t part);
  /// Takes in resources that an allocation holds from now on, or holds no longer.
  void hold(const rset::ResourceSet& resources, bool adds);
  /// Takes in the present states of these targets.
  void refresh(const text::IdSet& ranks, WallTime now);
  void take_next(Node& node, WallTime now);
  void count(const Node& node, bool adds);

  const module::Module& module_;
  const module::Acquisition& acquisition_;
  Nodes nodes_;
  std::vector<Part> parts_;
  std::uint64_t inventory_version_ = ~std::uint64_t{0};
  WallTime last_{};
  std::map<std::string, std::uint64_t, std::less<>> transitions_;
  Histogram unavailable_;
  Histogram draining_;
};

}  // namespace resourced::daemon::service
