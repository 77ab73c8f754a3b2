// The tables of this daemon's own: [bus], [store], [log] and [acquire].

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "config/accounts.hpp"
#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "core/constraint/query.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

namespace {

constexpr int max_hwm = 1000000;
// Upper bound of a heartbeat timeout that libzmq can announce to a peer: ZMQ_HEARTBEAT_TTL holds tenths of
// seconds in 16 bits.
constexpr std::chrono::milliseconds max_heartbeat{6553500};
// A message carries an R: smaller would refuse inventories, larger lets one peer fill the memory.
constexpr std::int64_t min_message_size = std::int64_t{64} << 10;
constexpr std::int64_t max_message_size = std::int64_t{4} << 30;

std::vector<std::string> read_listen(const TableReader& bus) {
  std::vector<std::string> uris = bus.strings("listen");
  std::set<std::string_view> seen;
  for (const std::string& uri : uris) {
    const std::size_t scheme = uri.find("://");
    const std::string_view name = std::string_view(uri).substr(0, scheme);
    if (scheme == std::string::npos || (name != "ipc" && name != "tcp" && name != "local"))
      bus.fail("listen",
               fmt::format("{} does not begin with ipc://, tcp:// or local://", resourced::quoted(uri)));
    if (uri.size() == scheme + 3)
      bus.fail("listen", fmt::format("{} has no address", resourced::quoted(uri)));
    if (!seen.insert(uri).second)
      bus.fail("listen", fmt::format("{} is there twice", resourced::quoted(uri)));
  }
  return uris;
}

std::chrono::milliseconds read_heartbeat(const TableReader& bus, std::string_view key,
                                         std::chrono::milliseconds otherwise) {
  const auto seconds = bus.duration(key);
  if (!seconds) return otherwise;
  const double milliseconds = std::round(*seconds * 1000);
  if (milliseconds < 1 || milliseconds > static_cast<double>(max_heartbeat.count()))
    bus.fail(key, fmt::format("{}s is not from 1ms to {}s", *seconds, max_heartbeat.count() / 1000));
  return std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds));
}

std::uint32_t read_socket_mode(const TableReader& bus) {
  const std::string text = bus.filled_string("socket-mode");
  if (text.empty()) return Bus().socket_mode;
  std::uint32_t mode = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, mode, 8);
  if (error != std::errc() || stop != end || mode > 0777)
    bus.fail("socket-mode", fmt::format("{} is not a mode such as \"0660\"", resourced::quoted(text)));
  return mode;
}

Partition read_partition(const TableReader& table) {
  if (!table.has("name")) table.fail("name", "is missing");
  Partition partition{table.filled_string("name"), std::nullopt, std::nullopt};
  if (table.has("targets") == table.has("constraint"))
    table.fail("", "must have one of targets and constraint, and not both");
  if (table.has("targets")) partition.targets = table.filled_string("targets");
  if (table.has("constraint")) {
    partition.constraint = table.filled_string("constraint");
    try {
      static_cast<void>(parse_query(*partition.constraint));
    } catch (const Error& error) {
      table.fail("constraint", error.what());
    }
  }
  return partition;
}

}  // namespace

Bus read_bus(const Document& document) {
  Bus result;
  const Node* node = find_member(*document.root().table(), "bus");
  if (!node) return result;
  const KeyPath path{nullptr, "bus"};
  const TableReader bus(document, *node, path,
                        {"listen", "send-hwm", "receive-hwm", "heartbeat-interval", "heartbeat-timeout",
                         "max-message-size", "curve-key-file", "insecure", "socket-mode", "socket-group"});
  result.listen = read_listen(bus);
  result.send_hwm = static_cast<int>(bus.integer("send-hwm", 1, max_hwm).value_or(result.send_hwm));
  result.receive_hwm = static_cast<int>(bus.integer("receive-hwm", 1, max_hwm).value_or(result.receive_hwm));
  result.heartbeat_interval = read_heartbeat(bus, "heartbeat-interval", result.heartbeat_interval);
  result.heartbeat_timeout = read_heartbeat(bus, "heartbeat-timeout", result.heartbeat_timeout);
  if (result.heartbeat_timeout < result.heartbeat_interval)
    bus.fail(bus.has("heartbeat-timeout") ? "heartbeat-timeout" : "heartbeat-interval",
             fmt::format("the heartbeat-timeout of {}ms is shorter than the heartbeat-interval of {}ms",
                         result.heartbeat_timeout.count(), result.heartbeat_interval.count()));
  if (const auto size = bus.integer("max-message-size", min_message_size, max_message_size))
    result.max_message_size = static_cast<std::size_t>(*size);
  result.curve_key_file = bus.path("curve-key-file");
  result.insecure = bus.boolean("insecure", false);
  result.socket_mode = read_socket_mode(bus);
  if (const std::string group = bus.filled_string("socket-group"); !group.empty()) {
    try {
      result.socket_group = find_group(group).id;
    } catch (const Error& error) {
      bus.fail("socket-group", error.what());
    }
  }
  return result;
}

Store read_store(const Document& document) {
  Store result;
  const Node* node = find_member(*document.root().table(), "store");
  if (!node) return result;
  const KeyPath path{nullptr, "store"};
  const TableReader store(document, *node, path, {"directory", "history"});
  result.directory = store.path("directory");
  result.history = store.duration("history").value_or(result.history);
  return result;
}

void read_history(Config& config) {
  const Document& document = *config.document;
  const Node* node = find_member(*document.root().table(), "resource");
  if (!node || !node->table() || !find_member(*node->table(), "history")) return;
  const KeyPath path{nullptr, "resource"};
  const std::optional<double> history = TableReader(document, *node, path).duration("history");
  const Node* store = find_member(*document.root().table(), "store");
  if (store && find_member(*store->table(), "history") && config.store.history != *history)
    throw config.fault(
        "resource.history",
        fmt::format("differs from store.history ({}), which means the same: leave one of them out",
                    config.where("store.history")));
  config.store.history = *history;
}

Log read_log(const Document& document) {
  Log result;
  const Node* node = find_member(*document.root().table(), "log");
  if (!node) return result;
  const KeyPath path{nullptr, "log"};
  const TableReader log(document, *node, path, {"level"});
  if (const std::string* level = log.string("level")) {
    try {
      result.level = parse_log_level(*level);
    } catch (const Error& error) {
      log.fail("level", error.what());
    }
  }
  return result;
}

Acquire read_acquire(const Document& document) {
  Acquire result;
  const Node* node = find_member(*document.root().table(), "acquire");
  if (!node) return result;
  const KeyPath path{nullptr, "acquire"};
  const TableReader acquire(document, *node, path, {"partition"});
  const Array* partitions = acquire.array("partition");
  if (!partitions) return result;
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < partitions->size(); ++i) {
    const KeyPath place{&path, "partition", i};
    const TableReader table(document, (*partitions)[i], place, {"name", "targets", "constraint"});
    result.partitions.push_back(read_partition(table));
    const std::string& name = result.partitions.back().name;
    if (!names.insert(name).second)
      table.fail("name", fmt::format("{} names an earlier partition too", resourced::quoted(name)));
  }
  return result;
}

}  // namespace resourced::config
