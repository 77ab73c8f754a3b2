// Topics of RPCs, see topic.hpp.
#include "proto/topic.hpp"

namespace resourced::proto {

namespace {
constexpr std::string_view cancel_suffix = "-cancel";
}  // namespace

TopicName split_topic(std::string_view topic) noexcept {
  const auto period = topic.find('.');
  if (period == std::string_view::npos) {
    return {topic, {}};
  }
  return {topic.substr(0, period), topic.substr(period + 1)};
}

std::optional<std::string_view> cancelled_topic(std::string_view topic) noexcept {
  const auto method = split_topic(topic).method;
  if (method.size() <= cancel_suffix.size() || !method.ends_with(cancel_suffix)) {
    return std::nullopt;
  }
  topic.remove_suffix(cancel_suffix.size());
  return topic;
}

bool is_disconnect(std::string_view topic) noexcept {
  const auto name = split_topic(topic);
  return !name.service.empty() && name.method == "disconnect";
}

}  // namespace resourced::proto
