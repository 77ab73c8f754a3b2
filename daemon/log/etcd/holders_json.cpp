#include "daemon/log/etcd/holders_json.hpp"

#include <cerrno>

#include <nlohmann/json.hpp>

#include "core/cluster/keys.hpp"
#include "core/error.hpp"
#include "proto/actor_json.hpp"

namespace resourced::daemon::log::etcd {

using nlohmann::json;

std::string encode_holders(const std::vector<module::PartitionHolder>& holders) {
  json list = json::array();
  for (const module::PartitionHolder& holder : holders)
    list.push_back({{"partition", holder.partition}, {"by", proto::actor_to_json(holder.by)}});
  return json{{"holders", std::move(list)}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<module::PartitionHolder> decode_holders(std::string_view text) {
  const std::string key(::resourced::cluster::holders_key);
  const json object = ::resourced::cluster::object_of(key, text);
  const auto list = object.find("holders");
  if (list == object.end() || !list->is_array()) throw ::resourced::cluster::Garbled(key);
  std::vector<module::PartitionHolder> holders;
  for (const json& entry : *list) {
    const auto by = entry.is_object() ? entry.find("by") : entry.end();
    if (by == entry.end()) throw ::resourced::cluster::Garbled(key);
    try {
      holders.push_back({::resourced::cluster::text_of(key, entry, "partition"), proto::read_actor(*by)});
    } catch (const Error&) {
      throw ::resourced::cluster::Garbled(key);
    }
  }
  return holders;
}

}  // namespace resourced::daemon::log::etcd
