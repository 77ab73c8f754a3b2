#include "cli/views/absent.hpp"

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/text/hostlist.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

Listing absent_columns() {
  Listing listing;
  listing.columns = {
      {"state", "STATE"},      {"timestamp", "TIMESTAMP"},       {"until", "UNTIL", false, true},
      {"name", "NAME"},        {"nnodes", "NNODES", true, true}, {"reason", "REASON"},
      {"nodelist", "NODELIST"}};
  add_cause_columns(listing);
  return listing;
}

Listing absent_view(const nlohmann::json& payload, const nlohmann::json& allocations,
                    const UserName& user_name) {
  const proto::topics::Status status = proto::topics::parse_status(payload);
  const proto::topics::Status::Absent& absent = status.absent;
  const Cell none(nullptr, "-");
  Listing listing = absent_columns();
  const auto add_drain = [&](const char* state, const proto::topics::Status::Absent::OfDrain& drain) {
    const Cell until = drain.until ? Cell(to_number(*drain.until), format_time(*drain.until)) : none;
    std::vector<Cell> row{state,
                          Cell(to_number(drain.timestamp), format_time(drain.timestamp)),
                          until,
                          none,
                          drain.hosts.size(),
                          drain.reason.value_or(""),
                          drain.hosts.encode()};
    add_cause_cells(row, drain, user_name);
    listing.rows.push_back(std::move(row));
  };
  const auto add = [&](const char* state, const std::string& name, const text::Hostlist& hosts) {
    listing.rows.push_back({state, none, none, name, hosts.size(), "", hosts.encode(), none, none, none});
  };
  for (const auto& drain : absent.drains) add_drain("drained", drain);
  for (const auto& drain : absent.scheduled) add_drain("scheduled", drain);
  for (const auto& property : absent.properties)
    add(property.added ? "property-add" : "property-remove", property.name, property.hosts);
  for (const auto& allocation : proto::topics::parse_allocation_list(allocations)) {
    const auto hosts = text::Hostlist::parse(allocation.absent);
    if (!hosts.empty()) add("allocated", text_of(allocation.name()), hosts);
  }
  return listing;
}

}  // namespace resourced::cli::views
