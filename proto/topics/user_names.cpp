#include "proto/topics/user_names.hpp"

#include <nlohmann/json.hpp>

#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using nlohmann::json;

text::IdSet parse_user_names_request(const json& payload) {
  return text::IdSet::parse(required_string(payload, "userids"));
}

std::string encode_user_names(const std::map<std::uint32_t, std::string>& names) {
  json found = json::object();
  for (const auto& [id, name] : names) found[std::to_string(id)] = name;
  return json{{"names", found}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace resourced::proto::topics
