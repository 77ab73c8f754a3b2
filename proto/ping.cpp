#include "proto/ping.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

}  // namespace

std::string answer_ping(const Message& request, std::uint64_t connection) {
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
