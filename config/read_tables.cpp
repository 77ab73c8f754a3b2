// Reads values of [bus], [http], [cluster] and [acquire] that need more than their type.

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/access.hpp"
#include "config/faults.hpp"
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
    try {
      static_cast<void>(constraint::parse_query(*partition.constraint));
    } catch (const Error& error) {
      table.fail("constraint", error.what());
    }
  }
  return partition;
}

}  // namespace

std::vector<std::string> read_listen(const TableReader& bus, const Setting& setting) {
  std::vector<std::string> uris = bus.strings(setting.key);
  std::set<std::string_view> seen;
  for (const std::string& uri : uris) {
    const std::size_t scheme = uri.find("://");
    const std::string_view name = std::string_view(uri).substr(0, scheme);
    if (scheme == std::string::npos || (name != "ipc" && name != "tcp" && name != "local"))
      bus.fail(setting.key,
               fmt::format("{} does not begin with ipc://, tcp:// or local://", text::quoted(uri)));
    if (uri.size() == scheme + 3) bus.fail(setting.key, fmt::format("{} has no address", text::quoted(uri)));
    if (!seen.insert(uri).second) bus.fail(setting.key, fmt::format("{} is there twice", text::quoted(uri)));
  }
  return uris;
}

std::vector<std::string> read_http_listen(const TableReader& http, const Setting& setting) {
  std::vector<std::string> texts = http.strings(setting.key);
  std::set<std::string_view> seen;
  for (const std::string& text : texts) {
    try {
      (void)parse_http_address(text);
    } catch (const Error& error) {
      http.fail(setting.key, error.what());
    }
    if (!seen.insert(text).second)
      http.fail(setting.key, fmt::format("{} is there twice", text::quoted(text)));
  }
  return texts;
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
  std::vector<std::string> texts = cluster.strings(setting.key);
  std::set<std::string_view> seen;
  for (const std::string& text : texts) {
    try {
      (void)parse_etcd_endpoint(text);
    } catch (const Error& error) {
      cluster.fail(setting.key, error.what());
    }
    if (!seen.insert(text).second)
      cluster.fail(setting.key, fmt::format("{} is there twice", text::quoted(text)));
  }
  return texts;
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
  try {
    return find_group(name).id;
  } catch (const Error& error) {
    bus.fail(setting.key, error.what());
  }
}

std::uint32_t read_flux_user(const TableReader& flux, const Setting& setting) {
  const std::string name = flux.filled_string(setting.key);
  try {
    return find_user(name);
  } catch (const Error& error) {
    flux.fail(setting.key, error.what());
  }
}

std::vector<Partition> read_partitions(const TableReader& acquire, const Setting& setting) {
  const Array& elements = *acquire.array(setting.key);
  std::vector<Partition> partitions;
  std::set<std::string, std::less<>> names;
  FaultList faults;
  for (std::size_t i = 0; i < elements.size() && !faults.is_full(); ++i) {
    faults.attempt([&] {
      const KeyPath place{&acquire.key_path(), setting.key, i};
      const TableReader table(acquire.document(), elements[i], place, settings_of("acquire.partition"));
      partitions.push_back(read_partition(table));
      const std::string& name = partitions.back().name;
      if (!names.insert(name).second)
        table.fail("name", fmt::format("{} is the name of an earlier partition", text::quoted(name)));
    });
  }
  faults.check();
  return partitions;
}

}  // namespace resourced::config
