// Payloads of resource.metrics: the daemon's metrics as Prometheus reads them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::proto::topics {

/// The request `{"nodes": BOOL?}`: with nodes, the answer has a metric for each target, and costs by their
/// number.
struct MetricsRequest {
  bool nodes = false;
};
/// Reads the request. Throws Error EPROTO that names a key of the wrong type.
[[nodiscard]] MetricsRequest parse_metrics_request(const nlohmann::json& payload);

/// Returns the answer `{"text": TEXT}` in the text exposition format of Prometheus. `text` must be valid
/// UTF-8 without control characters except line ends.
[[nodiscard]] std::string encode_metrics(std::string_view text);
/// Reads the answer. Throws Error EPROTO for any other payload.
[[nodiscard]] std::string parse_metrics(std::string_view payload);

}  // namespace resourced::proto::topics
