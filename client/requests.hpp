// The payloads of requests as JSON, which the public headers hide.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "client/allocations.hpp"
#include "proto/message.hpp"

namespace resourced::client {

/// Encodes the payload of a request; null has none. Throws Error EINVAL if it is no object, or has a string
/// that is not UTF-8.
[[nodiscard]] proto::Payload to_payload(std::string_view topic, const nlohmann::json& payload);

struct LedgerRequest {
  std::string_view topic;
  nlohmann::json payload;
};
/// `partition` is that of the allocations; without it, the daemon takes that of the acquisition that has the
/// targets.
[[nodiscard]] LedgerRequest request_of(const LedgerChange& wanted,
                                       const std::optional<std::string>& partition = std::nullopt);
[[nodiscard]] LedgerRequest request_of(const AllocationUpdate& wanted);

}  // namespace resourced::client
