#include "proto/ping.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/rpc.hpp"
#include "proto/topic.hpp"

namespace resourced::proto {
namespace {

constexpr std::size_t hop_size = 8;

// Routes are bytes of the sender's choice: only such as can stand in a line of text are shown.
std::string hop(std::string_view route) {
  std::string text(route.substr(0, hop_size));
  std::ranges::replace_if(
      text, [](char c) { return c <= ' ' || c > '~' || c == '!'; }, '*');
  return text;
}

// Each value but the first follows one of these, so that this is cheap and never too few. Flux pads with
// letters.
std::size_t count_values(std::string_view text) {
  const auto leads = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };
  return static_cast<std::size_t>(std::ranges::count_if(text, leads)) + 1;
}

}  // namespace

std::string answer_ping(const Message& request, std::uint64_t connection) {
  if (request.has(flag::payload) && count_values(request.text()) > max_ping_values) {
    throw Error(EMSGSIZE, fmt::format("{}: more than {} values", request.topic, max_ping_values));
  }
  nlohmann::json answer = parse_optional_object(request);
  std::string route;
  for (auto from = request.routes.rbegin(); from != request.routes.rend(); ++from) route += hop(*from) + '!';
  route += fmt::format("{:08x}!{}", connection, hop(split_topic(request.topic).service));
  answer["route"] = std::move(route);
  answer["userid"] = request.userid;
  answer["rolemask"] = request.rolemask;
  answer["rank"] = 0;
  return answer.dump();
}

}  // namespace resourced::proto
