#include "core/cluster/roster.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::cluster {

using nlohmann::json;

Transaction ask_roster() {
  return {{},
          {Read{std::string(leader_key)}, Read{std::string(head_key)},
           Read{member_key(""), end_of(members_folder), most_members}},
          {}};
}

namespace {

// For log lines, errors and tables.
std::string line_of(const std::string& key, const json& object, const char* name) {
  return json_text::printable_line(text_of(key, object, name));
}

}  // namespace

Leader read_leader(const KeyValue& leader) {
  const json value = object_of(leader.key, leader.value);
  return {line_of(leader.key, value, "name"), line_of(leader.key, value, "uri"),
          text_of(leader.key, value, "process"), leader.created};
}

Roster read_roster(const TransactionDone& done) {
  constexpr std::size_t reads = 3;
  check_found(done, reads);
  Roster roster;
  // Keys without a lease are of no running member: a copy of etcd's keys has them.
  if (!done.found[0].empty() && done.found[0][0].lease != 0) roster.leader = read_leader(done.found[0][0]);
  if (!done.found[1].empty()) roster.head = sequence_of(done.found[1][0]);
  for (const KeyValue& member : done.found[2]) {
    if (member.lease == 0) continue;
    const json value = object_of(member.key, member.value);
    Standing standing;
    standing.name =
        json_text::printable_line(member.key.substr(std::min(member.key.size(), member_key("").size())));
    standing.uri = line_of(member.key, value, "uri");
    if (value.contains("version")) standing.version = line_of(member.key, value, "version");
    standing.applied = number_of(member.key, value, "applied");
    if (value.contains("files")) standing.files = read_files(value["files"]);
    roster.members.push_back(std::move(standing));
  }
  return roster;
}

std::string process_of(const KeyValue& member) {
  try {
    const json value = object_of(member.key, member.value);
    return value.contains("process") ? text_of(member.key, value, "process") : "";
  } catch (const Garbled&) {
    return "";
  }
}

FileDigests leading_files(const Roster& roster) {
  if (!roster.leader) return {};
  const auto found = std::ranges::find(roster.members, roster.leader->name, &Standing::name);
  return found == roster.members.end() ? FileDigests() : found->files;
}

const Standing& choose_successor(const Roster& roster, const std::string& self,
                                 const std::optional<std::string>& name) {
  if (name == self) throw Error(EINVAL, fmt::format("{} leads already", text::quoted(self)));
  const Standing* chosen = nullptr;
  for (const Standing& member : roster.members) {
    if (member.name == self || (name && member.name != *name)) continue;
    if (chosen == nullptr || member.applied > chosen->applied) chosen = &member;
  }
  if (chosen != nullptr) return *chosen;
  if (!name) throw Error(ENOENT, "there is no standby that could lead");
  throw Error(ENOENT,
              fmt::format("there is no standby {}; resourcectl cluster shows them", text::quoted(*name)));
}

}  // namespace resourced::cluster
