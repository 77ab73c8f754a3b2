// resource.metrics: the daemon's metrics as Prometheus reads them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::proto::topics {

/// `{"nodes": BOOL?}`: also a metric for each target, which costs by their number.
struct MetricsRequest {
  bool nodes = false;
};
/// Throws Error EPROTO that names a key of the wrong type.
[[nodiscard]] MetricsRequest parse_metrics_request(const nlohmann::json& payload);

/// `{"text": TEXT}`: the text exposition format of Prometheus. `text` is valid UTF-8 and has no control
/// characters but line ends.
[[nodiscard]] std::string encode_metrics(std::string_view text);
/// Throws Error EPROTO for any other payload.
[[nodiscard]] std::string parse_metrics(std::string_view payload);

}  // namespace resourced::proto::topics
