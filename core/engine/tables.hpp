// The tables that a log keeps of the present, in memory: the fold of TableChanges. A store on disk does the
// same with rows.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/engine/record.hpp"

namespace resourced::engine {

class Tables {
 public:
  /// In the order of the events.
  void apply(const TableChanges& changes);

  /// What the next start takes up. Throws Error as ResourceSet::parse() does, for an inventory that is none.
  [[nodiscard]] RecordedState state() const;

 private:
  struct Drain {
    double timestamp = 0;
    std::optional<std::string> reason;
  };

  void apply_drains(const TableChanges& changes);
  void apply_properties(const TableChanges& changes);

  std::map<TargetName, Drain> drains_;
  /// Whether the property was added; false for one that was taken away.
  std::map<std::pair<std::string, TargetName>, bool> properties_;
  std::set<TargetName> shrunk_;
  std::optional<RecordedState::Expiration> expiration_;
  std::optional<TableChanges::Inventory> inventory_;
};

}  // namespace resourced::engine
