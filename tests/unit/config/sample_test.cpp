// The packaged configuration: it works as it is, and every setting that it shows is one, with its true
// default.
#include <fstream>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "config/tables.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::failure_of;
using resourced::test::load_text;
using resourced::test::TempDir;

namespace {

const std::string sample_path = RESOURCED_SOURCE "/config/resourced.toml";

/// The sample with the settings that are not in force (`#key = value`, `#[table]`) put in force.
std::string uncommented() {
  std::ifstream in(sample_path);
  std::string text;
  for (std::string line; std::getline(in, line);) {
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    text += setting ? line.substr(1) : line;
    text += '\n';
  }
  return text;
}

/// The keys that the error about an unknown one lists.
std::set<std::string> known_keys(const std::string& table) {
  const std::string text =
      failure_of([&] { static_cast<void>(load_text(table + "\nno-such-key = 1\n")); }).text;
  const std::string lead = "not one of ";
  std::set<std::string> keys;
  std::istringstream list(text.substr(text.find(lead) + lead.size()));
  for (std::string key; std::getline(list, key, ',');) keys.insert(key.substr(key.find_first_not_of(' ')));
  return keys;
}

std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& item : object.items()) keys.insert(item.key());
  return keys;
}

}  // namespace

TEST_CASE("the sample configuration is an inventory of eight nodes") {
  const Config config = load(sample_path);
  const Inventory inventory = load_inventory(config);
  CHECK(inventory.resources.counts() == ResourceCounts{8, 32, 4});
  CHECK(inventory.resources.nodelist().encode() == "node[0-7]");
  CHECK(inventory.exclude.empty());
  CHECK(config.bus.listen.empty());
  CHECK(config.store.directory.empty());
  CHECK(config.acquire.partitions.empty());
}

TEST_CASE("every setting that the sample shows is accepted, and the default it shows is the default") {
  const TempDir dir;
  const Config shown = load(dir.write("resourced.toml", uncommented()));
  const Config plain = load(sample_path);
  CHECK(shown.resource.exclude == plain.resource.exclude);
  CHECK(shown.resource.journal_max == plain.resource.journal_max);
  CHECK(shown.resource.norestrict == plain.resource.norestrict);
  CHECK(shown.resource.noverify == plain.resource.noverify);
  CHECK(shown.resource.no_update_watch == plain.resource.no_update_watch);
  CHECK(shown.resource.parent_settle == plain.resource.parent_settle);
  CHECK(shown.resource.rediscover == plain.resource.rediscover);
  CHECK(shown.resource.discovery_timeout == plain.resource.discovery_timeout);
  CHECK(shown.resource.shrink_lost == plain.resource.shrink_lost);
  CHECK(shown.resource.verify.core == plain.resource.verify.core);
  CHECK(shown.resource.verify.gpu == plain.resource.verify.gpu);
  CHECK(shown.resource.verify.hostname == plain.resource.verify.hostname);
  CHECK(shown.bus.send_hwm == plain.bus.send_hwm);
  CHECK(shown.bus.receive_hwm == plain.bus.receive_hwm);
  CHECK(shown.bus.heartbeat_interval == plain.bus.heartbeat_interval);
  CHECK(shown.bus.heartbeat_timeout == plain.bus.heartbeat_timeout);
  CHECK(shown.bus.max_message_size == plain.bus.max_message_size);
  CHECK(shown.store.history == plain.store.history);
  CHECK(shown.log == plain.log);
  CHECK(shown.bus.insecure == plain.bus.insecure);
  CHECK(shown.bus.socket_mode == plain.bus.socket_mode);
  CHECK(shown.access.local == plain.access.local);
  CHECK(shown.access.anonymous == plain.access.anonymous);
  CHECK(shown.limits == plain.limits);
  CHECK(shown.monitor == plain.monitor);
  CHECK(shown.acquire.partitions.size() == 2);
  CHECK(shown.queues == std::vector<Queue>{{"batch", "node[0-5]"}});
}

TEST_CASE("the sample shows every key there is") {
  const TempDir dir;
  const nlohmann::json shown = to_json(load(dir.write("resourced.toml", uncommented())));
  const auto tables = own_tables();
  CHECK(keys_of(shown) == std::set<std::string>(tables.begin(), tables.end()));
  CHECK(keys_of(shown["resource"]) == known_keys("[resource]"));
  CHECK(keys_of(shown["resource"]["verify"]) == known_keys("[resource.verify]"));
  CHECK(keys_of(shown["bus"]) == known_keys("[bus]"));
  CHECK(keys_of(shown["store"]) == known_keys("[store]"));
  CHECK(keys_of(shown["log"]) == known_keys("[log]"));
  CHECK(keys_of(shown["acquire"]) == known_keys("[acquire]"));
  CHECK(keys_of(shown["monitor"]) == known_keys("[monitor]"));
  CHECK(keys_of(shown["access"]) == known_keys("[access]"));
  CHECK(keys_of(shown["access"]["rule"][0]) == known_keys("[[access.rule]]"));
  CHECK(keys_of(shown["access"]["key"][0]) == known_keys("[[access.key]]"));
  CHECK(keys_of(shown["limits"]) == known_keys("[limits]"));
  std::set<std::string> entry;
  for (const auto& item : shown["resource"]["config"]) entry.merge(keys_of(item));
  CHECK(entry == known_keys("[[resource.config]]"));
  std::set<std::string> partition;
  for (const auto& item : shown["acquire"]["partition"]) partition.merge(keys_of(item));
  CHECK(partition == known_keys("[[acquire.partition]]"));
}
