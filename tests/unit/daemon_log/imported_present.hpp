// A store that is made by an import, and the state at its end.
#pragma once

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "daemon/log/import.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {

/// The start of an instance with n0 to n3.
inline constexpr const char* restart =
    R"({"timestamp":1,"name":"restart","context":{"ranks":"0-3","online":"0-3","nodelist":"n[0-3]"}})"
    "\n"
    R"({"timestamp":1,"name":"resource-define","context":{"method":"configuration"}})"
    "\n";

inline std::string update(const std::string& context) {
  return fmt::format("{{\"timestamp\":2,\"name\":\"resource-update\",\"context\":{}}}\n", context);
}

/// `host`, or `host/2` for the third target of it.
inline std::string text_of(const module::TargetName& target) {
  return target.ordinal == 0 ? target.host : fmt::format("{}/{}", target.host, target.ordinal);
}

/// A store imported from a log, and the state that a start would load from it.
struct Present {
  explicit Present(const std::string& log, const ImportOptions& options = {}) {
    std::istringstream input(log);
    imported = import_events(input, "log", dir.path(), options);
    StoreWriter writer(store_path(dir.path()));
    state = state_of(writer);
  }

  [[nodiscard]] std::set<std::string> properties() const {
    std::set<std::string> result;
    for (const module::RecordedProperty& property : state.absent.properties) {
      result.insert(
          fmt::format("{}{}@{}", property.present ? "+" : "-", property.name, text_of(property.target)));
    }
    return result;
  }
  [[nodiscard]] std::set<std::string> drained() const {
    std::set<std::string> result;
    for (const module::RecordedDrain& drain : state.absent.drains) result.insert(text_of(drain.target));
    return result;
  }
  [[nodiscard]] std::set<std::string> shrunk() const {
    std::set<std::string> result;
    for (const module::TargetName& target : state.absent.shrunk) result.insert(text_of(target));
    return result;
  }

  /// The targets of an allocation.
  [[nodiscard]] std::set<std::string> targets_of_allocation(const std::string& id) const {
    std::set<std::string> result;
    const module::Allocation* allocation = state.ledger.find({"", id});
    if (allocation == nullptr) return result;
    for (const module::AbsentResources& resources : allocation->absent)
      result.insert(text_of(resources.target));
    return result;
  }

  /// The events that a journal shows.
  [[nodiscard]] std::vector<LoggedEvent> events() const {
    StoreWriter writer(store_path(dir.path()));
    StoreReader reader(writer.database(), writer.hosts());
    return reader.page({}, 1, imported.events, 1000).events;
  }

  /// The sequences of the events of a host.
  [[nodiscard]] std::vector<Sequence> events_of(const std::string& host) const {
    StoreWriter writer(store_path(dir.path()));
    StoreReader reader(writer.database(), writer.hosts());
    EventFilter filter;
    filter.targets = targets_of(host);
    std::vector<Sequence> result;
    for (const LoggedEvent& event : reader.page(filter, 1, imported.events, 1000).events) {
      result.push_back(event.sequence);
    }
    return result;
  }

  resourced::test::TempDir dir;
  Imported imported;
  module::State state;
};

using Names = std::set<std::string>;

}  // namespace resourced::daemon::log
