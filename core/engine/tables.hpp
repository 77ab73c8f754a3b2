// The tables of the present in memory, as a fold of TableChanges. The store on disk keeps the same as rows.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/engine/record.hpp"
#include "core/time.hpp"

namespace resourced::engine {

class Tables {
 public:
  /// Applies the changes of one event. Events come in their order.
  void apply(const TableChanges& changes);

  /// The recorded state for the next start. Throws Error as ResourceSet::parse() does if the text of the
  /// inventory is not an R.
  [[nodiscard]] module::RecordedState state() const;

 private:
  struct Drain {
    WallTime timestamp{};
    std::optional<std::string> reason;
    std::optional<module::Actor> by;
    std::optional<WallTime> until;
  };
  using Drains = std::map<module::TargetName, Drain>;

  static void apply_drains(Drains& drains, const module::TargetNames& gone,
                           const std::vector<TableChanges::Drained>& changed);
  void apply_properties(const TableChanges& changes);
  void apply_allocations(const TableChanges& changes);

  Drains drains_;
  Drains scheduled_;
  /// Whether the property was added; false for one that was removed.
  std::map<std::pair<std::string, module::TargetName>, bool> properties_;
  std::set<module::TargetName> shrunk_;
  std::optional<module::RecordedState::Expiration> expiration_;
  std::optional<TableChanges::Inventory> inventory_;
  std::map<std::string, TableChanges::Allocated> allocations_;
};

}  // namespace resourced::engine
