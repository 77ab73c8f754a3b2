#include "proto/topics/metrics.hpp"

#include <algorithm>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"

namespace resourced::proto::topics {

MetricsRequest parse_metrics_request(const nlohmann::json& payload) {
  MetricsRequest request;
  if (const auto nodes = payload.find("nodes"); nodes != payload.end()) {
    if (!nodes->is_boolean()) throw Error(EPROTO, "nodes must be a boolean");
    request.nodes = nodes->get<bool>();
  }
  return request;
}

// Escapes by hand, because a text with all targets has megabytes, and needs these escapes only.
std::string encode_metrics(std::string_view text) {
  std::string out = R"({"text":")";
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of("\"\\\n"), text.size());
    out.append(text.substr(0, plain));
    if (plain == text.size()) break;
    out.push_back('\\');
    out.push_back(text[plain] == '\n' ? 'n' : text[plain]);
    text.remove_prefix(plain + 1);
  }
  return out += R"("})";
}

std::string parse_metrics(std::string_view payload) {
  constexpr std::size_t depth = 2;
  json_text::JsonReader reader(payload, depth, json_text::JsonManners::lenient);
  std::string text;
  const bool is_read = reader.object([&](std::string_view key) {
    return key == "text" && reader.string(text);
  }) && reader.at_end();
  if (!is_read) throw Error(EPROTO, "the daemon's answer has no valid \"text\"");
  return text;
}

}  // namespace resourced::proto::topics
