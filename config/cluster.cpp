#include "config/cluster.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::config {
namespace {

constexpr std::uint16_t default_etcd_port = 2379;

[[noreturn]] void refuse_endpoint(std::string_view text, std::string_view why) {
  throw Error(EINVAL, fmt::format("{} {}", text::quoted(text), why));
}

}  // namespace

std::string EtcdEndpoint::authority() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

EtcdEndpoint parse_etcd_endpoint(std::string_view text) {
  constexpr std::string_view plain = "http://";
  constexpr std::string_view secure = "https://";
  EtcdEndpoint endpoint;
  endpoint.is_tls = text.starts_with(secure);
  if (!endpoint.is_tls && !text.starts_with(plain))
    refuse_endpoint(text, "does not begin with http:// or https://");
  std::string_view rest = text.substr(endpoint.is_tls ? secure.size() : plain.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const bool has_brackets = rest.starts_with('[');
  const std::size_t close = rest.find(']');
  if (has_brackets && close == std::string_view::npos) refuse_endpoint(text, "has no ] after its address");
  endpoint.host = has_brackets ? rest.substr(1, close - 1) : rest.substr(0, rest.find(':'));
  const std::string_view after =
      has_brackets ? rest.substr(close + 1) : rest.substr(std::min(rest.size(), endpoint.host.size()));
  const auto is_part = [has_brackets](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_' ||
           (has_brackets && letter == ':');
  };
  if (endpoint.host.empty() || !std::ranges::all_of(endpoint.host, is_part))
    refuse_endpoint(text, "has no host name or address");
  if (after.empty()) {
    endpoint.port = default_etcd_port;
  } else if (after.starts_with(':')) {
    endpoint.port = text::whole_number<std::uint16_t>(after.substr(1)).value_or(0);
    if (endpoint.port == 0) refuse_endpoint(text, "has no port from 1 to 65535 after its host");
  } else {
    refuse_endpoint(text, "has something other than a port after its host");
  }
  return endpoint;
}

}  // namespace resourced::config
