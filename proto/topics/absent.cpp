#include "proto/topics/absent.hpp"

#include <map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/text/hostlist.hpp"
#include "proto/json_text.hpp"
#include "proto/topics/answered.hpp"

namespace resourced::proto::topics {

using text::Hostlist;

namespace {

/// Appends `[{"nodelist": HOSTLIST, ...}]`, where `write` appends the further members of an entry.
template <class Entries, class Write>
void append_by_hosts(std::string& out, const char* key, const Entries& entries, Write write) {
  if (entries.empty()) return;
  append_key(out, key);
  out += '[';
  for (const auto& [entry, unsorted] : entries) {
    Hostlist hosts = unsorted;
    hosts.sort();
    if (out.back() != '[') out += ',';
    out += '{';
    append_member(out, "nodelist", hosts.encode());
    write(entry);
    out += '}';
  }
  out += ']';
}

}  // namespace

void append_absent(std::string& out, const module::AbsentStates& absent) {
  if (absent.drains.empty() && absent.scheduled.empty() && absent.properties.empty()) return;
  append_key(out, "absent");
  out += '{';
  const auto append = [&out](const char* key, const char* time_key,
                             const std::vector<module::RecordedDrain>& rows) {
    std::map<module::Drain, Hostlist> hosts;
    for (const module::RecordedDrain& row : rows) hosts[row].append(row.target.host);
    append_by_hosts(out, key, hosts,
                    [&](const module::Drain& drain) { append_shown_drain(out, time_key, drain); });
  };
  append("drain", "timestamp", absent.drains);
  append("scheduled", "from", absent.scheduled);
  std::map<std::pair<std::string, bool>, Hostlist> properties;
  for (const module::RecordedProperty& row : absent.properties)
    properties[{row.name, row.present}].append(row.target.host);
  append_by_hosts(out, "properties", properties, [&](const std::pair<std::string, bool>& property) {
    append_member(out, "name", property.first);
    append_member(out, "op", property.second ? "add" : "remove");
  });
  out += '}';
}

Status::Absent read_absent(const nlohmann::json& object) {
  Status::Absent absent;
  const auto for_each = [&](const char* key, auto&& f) {
    const auto entries = object.find(key);
    if (entries == object.end()) return;
    for (const nlohmann::json& entry : *entries) f(entry, answered_text(entry, "nodelist"));
  };
  for_each("drain", [&](const nlohmann::json& entry, const std::string& hosts) {
    absent.drains.push_back({read_shown_drain(hosts, entry, "timestamp"), Hostlist::parse(hosts)});
  });
  for_each("scheduled", [&](const nlohmann::json& entry, const std::string& hosts) {
    absent.scheduled.push_back({read_shown_drain(hosts, entry, "from"), Hostlist::parse(hosts)});
  });
  for_each("properties", [&](const nlohmann::json& entry, const std::string& hosts) {
    absent.properties.push_back(
        {answered_text(entry, "name"), answered_text(entry, "op") == "add", Hostlist::parse(hosts)});
  });
  return absent;
}

Hostlist Status::Absent::hosts() const {
  Hostlist all;
  for (const auto* rows : {&drains, &scheduled})
    for (const OfDrain& row : *rows) all.append(row.hosts);
  for (const OfProperty& row : properties) all.append(row.hosts);
  all.unique();
  return all;
}

}  // namespace resourced::proto::topics
