// Reads values of [bus], [http], [cluster] and [acquire] that need more than their type.

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/access.hpp"
#include "config/read_config.hpp"
#include "core/constraint/query.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::config {

namespace {

Partition read_partition(const TableReader& table) {
  if (!table.has("name")) table.fail("name", "is missing");
  Partition partition{table.filled_string("name"), std::nullopt, std::nullopt};
  if (table.has("targets") == table.has("constraint"))
    table.fail("", "must have either targets or constraint");
  if (table.has("targets")) partition.targets = table.filled_string("targets");
  if (table.has("constraint")) {
    partition.constraint = table.filled_string("constraint");
    table.checked("constraint", [&] { (void)constraint::parse_query(*partition.constraint); });
  }
  return partition;
}

/// Reads texts, none of which may be there twice. `check` throws Error for a wrong one.
template <class Check>
std::vector<std::string> read_distinct(const TableReader& table, std::string_view key, const Check& check) {
  std::vector<std::string> texts = table.strings(key);
  std::set<std::string_view> seen;
  for (const std::string& text : texts) {
    table.checked(key, [&] { check(text); });
    if (!seen.insert(text).second) table.fail(key, fmt::format("{} is there twice", text::quoted(text)));
  }
  return texts;
}

}  // namespace

std::vector<std::string> read_listen(const TableReader& bus, const Setting& setting) {
  return read_distinct(bus, setting.key, [](const std::string& uri) {
    const std::size_t scheme = uri.find("://");
    const std::string_view name = std::string_view(uri).substr(0, scheme);
    if (scheme == std::string::npos || (name != "ipc" && name != "tcp" && name != "local"))
      throw Error(EINVAL,
                  fmt::format("{} does not begin with ipc://, tcp:// or local://", text::quoted(uri)));
    if (uri.size() == scheme + 3) throw Error(EINVAL, fmt::format("{} has no address", text::quoted(uri)));
  });
}

std::vector<std::string> read_http_listen(const TableReader& http, const Setting& setting) {
  return read_distinct(http, setting.key, parse_http_address);
}

std::vector<std::string> read_http_names(const TableReader& http, const Setting& setting) {
  std::vector<std::string> names = http.strings(setting.key);
  const auto is_part = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_' ||
           letter == ':';
  };
  for (const std::string& name : names) {
    if (name.empty() || !std::ranges::all_of(name, is_part))
      http.fail(setting.key, fmt::format("{} is not a host name or an address", text::quoted(name)));
  }
  return names;
}

std::vector<std::string> read_etcd(const TableReader& cluster, const Setting& setting) {
  return read_distinct(cluster, setting.key, parse_etcd_endpoint);
}

std::string read_member(const TableReader& cluster, const Setting& setting) {
  std::string name = cluster.filled_string(setting.key);
  if (name.find('/') != std::string::npos)
    cluster.fail(setting.key, fmt::format("{} has a slash", text::quoted(name)));
  return name;
}

std::string read_prefix(const TableReader& cluster, const Setting& setting) {
  std::string prefix = cluster.filled_string(setting.key);
  if (!prefix.ends_with('/')) prefix += '/';
  return prefix;
}

std::uint32_t read_socket_mode(const TableReader& bus, const Setting& setting) {
  const std::string text = bus.filled_string(setting.key);
  const auto mode = text::whole_number<std::uint32_t>(text, 8);
  if (!mode || *mode > 0777)
    bus.fail(setting.key, fmt::format("{} is not a mode such as \"0660\"", text::quoted(text)));
  return *mode;
}

nlohmann::json tell_socket_mode(const std::uint32_t& mode) { return fmt::format("{:04o}", mode); }

std::uint32_t read_socket_group(const TableReader& bus, const Setting& setting) {
  const std::string name = bus.filled_string(setting.key);
  return bus.checked(setting.key, [&] { return find_group(name).id; });
}

std::uint32_t read_flux_user(const TableReader& flux, const Setting& setting) {
  const std::string name = flux.filled_string(setting.key);
  return flux.checked(setting.key, [&] { return find_user(name); });
}

std::vector<Partition> read_partitions(const TableReader& acquire, const Setting& setting) {
  std::vector<Partition> partitions;
  std::set<std::string, std::less<>> names;
  acquire.each_table(setting.key, "acquire.partition", [&](const TableReader& table) {
    const std::string& name = partitions.emplace_back(read_partition(table)).name;
    if (!names.insert(name).second)
      table.fail("name", fmt::format("{} is the name of an earlier partition", text::quoted(name)));
  });
  return partitions;
}

}  // namespace resourced::config
