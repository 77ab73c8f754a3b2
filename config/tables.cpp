#include "config/tables.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/faults.hpp"
#include "config/setting.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/text/nearest.hpp"

namespace resourced::config {

namespace {

constexpr std::array<std::string_view, 14> of_flux{
    "archive",     "bootstrap", "exec",   "fake-resources", "heartbeat", "ingest", "job-list",
    "job-manager", "kvs",       "policy", "sdexec",         "systemd",   "tbon",   "sched-simple"};

// Each scheduler of Flux has tables of its own: sched-simple, sched-fluxion-qmanager, sched-fluxion-resource.
constexpr std::string_view scheduler_prefix = "sched-";

constexpr std::array<std::string_view, 4> access_of_flux{"allow-guest-user", "allow-root-owner",
                                                         "private-mode", "roles"};

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_flux_table(std::string_view name) {
  return among(of_flux, name) || (name.starts_with(scheduler_prefix) && name != scheduler_prefix);
}

std::string_view nearest_table(std::string_view name) {
  // A key can be as long as its file, and the distance takes time; no table's name is this long.
  name = name.substr(0, 64);
  const auto own = own_tables();
  std::string_view nearest = own.front();
  std::size_t least = text::edit_distance(name, nearest);
  const auto consider = [&](std::string_view candidate) {
    const std::size_t distance = text::edit_distance(name, candidate);
    if (distance < least) {
      nearest = candidate;
      least = distance;
    }
  };
  std::for_each(own.begin(), own.end(), consider);
  std::for_each(of_flux.begin(), of_flux.end(), consider);
  return nearest;
}

std::string line(const Document& document, const Node& node, const KeyPath& path, std::string_view text) {
  return place_text(document.where(node), path.text(), text);
}

/// Keys of queues that concern jobs, not resources.
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
    if (among(own_tables(), member.key) || is_flux_table(member.key)) continue;
    faults.attempt([&] {
      throw Error(EINVAL,
                  line(document, member.node, {nullptr, member.key},
                       fmt::format("unknown table, the nearest known one is {}", nearest_table(member.key))));
    });
  }
  faults.check();
}

std::vector<std::string> passed_over(const Document& document) {
  std::vector<std::string> lines;
  for (const Member& member : *document.root().table()) {
    const KeyPath path{nullptr, member.key};
    if (is_flux_table(member.key))
      lines.push_back(line(document, member.node, path, "ignored: it is for other parts of Flux"));
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
