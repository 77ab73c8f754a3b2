#include "proto/topics/leader.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto::topics {

std::string encode_leader(const std::optional<Epoch>& epoch) {
  return epoch ? fmt::format("{{\"epoch\":{}}}", *epoch) : "{}";
}

std::optional<Epoch> parse_leader(const nlohmann::json& payload) {
  const auto found = payload.find("epoch");
  if (found == payload.end()) return std::nullopt;
  if (!found->is_number_unsigned()) throw Error(EPROTO, "epoch: not a number from 0 on");
  return found->get<Epoch>();
}

}  // namespace resourced::proto::topics
