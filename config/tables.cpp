#include "config/tables.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/faults.hpp"
#include "config/setting.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/text/nearest.hpp"

namespace resourced::config {

namespace {

struct FluxTable {
  std::string_view name;
  /// The part of Flux that reads the table.
  std::string_view reader;
};

// Tables and top-level keys of Flux. The keys `allow-sudo` and `log-level` are in the files of flux-security.
constexpr auto of_flux = std::to_array<FluxTable>({
    {"accounting", "flux-accounting"},
    {"allow-sudo", "flux-security"},
    {"archive", "flux-core"},
    {"bootstrap", "flux-core"},
    {"ca", "flux-security"},
    {"content-sqlite", "flux-core"},
    {"cray-slingshot", "flux-coral2"},
    {"cron", "flux-core"},
    {"exec", "flux-core"},
    {"fake-resources", "flux-core"},
    {"heartbeat", "flux-core"},
    {"ingest", "flux-core"},
    {"job-list", "flux-core"},
    {"job-manager", "flux-core"},
    {"kvs", "flux-core"},
    {"log-level", "flux-security"},
    {"modules", "flux-core"},
    {"policy", "flux-core"},
    {"rabbit", "flux-coral2"},
    {"run", "flux-security"},
    {"sched-fluxion-feasibility", "flux-sched"},
    {"sched-fluxion-qmanager", "flux-sched"},
    {"sched-fluxion-resource", "flux-sched"},
    {"sched-simple", "flux-core"},
    {"sdexec", "flux-core"},
    {"sign", "flux-security"},
    {"systemd", "flux-core"},
    {"tbon", "flux-core"},
});

// Prefix of the tables of schedulers of Flux.
constexpr std::string_view scheduler_prefix = "sched-";

constexpr std::array<std::string_view, 4> access_of_flux{"allow-guest-user", "allow-root-owner",
                                                         "private-mode", "roles"};

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the part of Flux that reads a table; empty if there is none.
std::string_view reader_of(std::string_view name) {
  const auto* const found = std::ranges::find(of_flux, name, &FluxTable::name);
  if (found != of_flux.end()) return found->reader;
  return name.starts_with(scheduler_prefix) && name != scheduler_prefix ? "a scheduler of Flux" : "";
}

std::string unknown_table(std::string_view name) {
  std::vector<std::string_view> known(own_tables().begin(), own_tables().end());
  for (const FluxTable& table : of_flux) known.push_back(table.name);
  const auto meant = text::nearest(name, known);
  return meant ? fmt::format("unknown table, the nearest known one is {}", *meant)
               : "unknown table, neither of this daemon nor of another part of Flux";
}

std::string line(const Document& document, const Node& node, const KeyPath& path, std::string_view text) {
  return place_text(document.where(node), path.text(), text);
}

/// Returns the keys of queues that concern jobs instead of resources.
std::set<std::string> other_queue_keys(const Table& queues) {
  std::set<std::string> keys;
  for (const Member& queue : queues) {
    if (!queue.node.table()) continue;
    for (const Member& member : *queue.node.table()) {
      if (member.key != "hosts") keys.insert(KeyPath{nullptr, member.key}.text());
    }
  }
  return keys;
}

}  // namespace

std::span<const std::string_view> own_tables() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> tables;
    for (const Section& section : sections()) {
      const std::string_view table = section.name.substr(0, section.name.find('.'));
      if (!among(tables, table)) tables.push_back(table);
    }
    return tables;
  }();
  return names;
}

std::span<const std::string_view> flux_keys(std::string_view table) noexcept {
  if (table != "access") return {};
  return access_of_flux;
}

void check_tables(const Document& document) {
  FaultList faults;
  for (const Member& member : *document.root().table()) {
    if (faults.is_full()) break;
    if (among(own_tables(), member.key) || !reader_of(member.key).empty()) continue;
    faults.attempt([&] {
      throw Error(EINVAL, line(document, member.node, {nullptr, member.key}, unknown_table(member.key)));
    });
  }
  faults.check();
}

std::vector<std::string> passed_over(const Document& document) {
  std::vector<std::string> lines = document.ignored();
  for (const Member& member : *document.root().table()) {
    const KeyPath path{nullptr, member.key};
    if (const std::string_view reader = reader_of(member.key); !reader.empty())
      lines.push_back(line(document, member.node, path, fmt::format("ignored: it is for {}", reader)));
    if (!member.node.table()) continue;
    if (member.key == "access") {
      for (const Member& key : *member.node.table()) {
        if (among(access_of_flux, key.key))
          lines.push_back(
              line(document, key.node, {&path, key.key},
                   "ignored: it is for Flux's broker; this daemon uses rules and keys of [access]"));
      }
    }
    if (member.key == "queues") {
      const auto keys = other_queue_keys(*member.node.table());
      if (!keys.empty())
        lines.push_back(line(document, member.node, path,
                             fmt::format("ignored: {} (for other parts of Flux)", fmt::join(keys, ", "))));
    }
  }
  return lines;
}

}  // namespace resourced::config
