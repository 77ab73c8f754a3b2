#include "flux/module/welcome.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::flux::module {
namespace {

constexpr std::size_t most_nesting = 128;
// Maximum size of the welcome: the configuration of an instance with an inventory of 16,384 hosts has less
// than a hundredth of it.
constexpr std::size_t most_bytes = std::size_t{64} << 20;

std::string read_file(int descriptor) {
  std::string text;
  std::array<char, 65536> part{};
  off_t at = 0;
  while (true) {
    const ssize_t size = ::pread(descriptor, part.data(), part.size(), at);
    if (size < 0) throw Error(errno, fmt::format("welcome: {}", std::strerror(errno)));
    if (size == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(size));
    if (text.size() > most_bytes)
      throw Error(EFBIG, fmt::format("welcome: is larger than {} bytes", most_bytes));
    at += size;
  }
}

std::uint32_t number(const Welcome& welcome, const char* name) {
  const auto found = welcome.attributes.find(name);
  const auto value =
      text::whole_number<std::uint32_t>(found == welcome.attributes.end() ? "" : found->second);
  if (!value) throw Error(EPROTO, fmt::format("welcome: the attribute {} is not a number", name));
  return *value;
}

int descriptor(const char* name) {
  constexpr std::string_view scheme = "fd://";
  const char* value = std::getenv(name);
  std::string_view text = value == nullptr ? "" : value;
  int number = -1;
  if (text.starts_with(scheme)) {
    text.remove_prefix(scheme.size());
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  if (number < 0) {
    throw Error(EINVAL, fmt::format("{} is not set, or names no descriptor: resourced-keeper, which a Flux "
                                    "broker loads, sets it",
                                    name));
  }
  return number;
}

}  // namespace

Inherited read_environment() {
  Inherited inherited{descriptor("RESOURCED_FLUX_LINK"), descriptor("RESOURCED_FLUX_WELCOME")};
  if (const char* text = std::getenv("RESOURCED_FLUX_GENERATION")) {
    const std::string_view digits = text;
    std::from_chars(digits.data(), digits.data() + digits.size(), inherited.generation);
  }
  return inherited;
}

Welcome read_welcome(int descriptor) {
  const auto read = read_json(read_file(descriptor), most_nesting, json_text::JsonManners::lenient);
  const auto* document = std::get_if<nlohmann::json>(&read);
  if (document == nullptr || !document->is_object()) throw Error(EPROTO, "welcome: not a JSON object");
  Welcome welcome;
  try {
    welcome.uuid = document->at("uuid").get<std::string>();
    if (const auto& arguments = document->at("args"); !arguments.is_null()) {
      welcome.arguments = arguments.get<std::vector<std::string>>();
    }
    for (const auto& [name, value] : document->at("attrs").items()) {
      welcome.attributes[name] = value.get<std::string>();
    }
    welcome.configuration = document->at("conf");
    if (welcome.configuration.is_null()) welcome.configuration = nlohmann::json::object();
  } catch (const nlohmann::json::exception& error) {
    throw Error(EPROTO, fmt::format("welcome: {}", error.what()));
  }
  welcome.rank = number(welcome, "rank");
  welcome.size = number(welcome, "size");
  if (const auto hosts = welcome.attributes.find("hostlist"); hosts != welcome.attributes.end()) {
    welcome.hosts = text::Hostlist::parse(hosts->second);
  }
  if (welcome.rank >= welcome.size)
    throw Error(EPROTO, fmt::format("welcome: rank {} of {} ranks", welcome.rank, welcome.size));
  if (welcome.hosts.size() < welcome.size) {
    throw Error(EPROTO, fmt::format("welcome: hostlist has {} hosts for {} ranks", welcome.hosts.size(),
                                    welcome.size));
  }
  return welcome;
}

Arguments read_arguments(const Welcome& welcome) {
  Arguments arguments;
  for (const std::string& word : welcome.arguments) {
    if (word == "monitor-force-up") {
      arguments.force_up = true;
    } else if (word == "noverify") {
      arguments.noverify = true;
    } else if (word == "notruncate") {
      arguments.notruncate = true;
    } else {
      throw Error(EINVAL, fmt::format("unknown option: {}", word));
    }
  }
  return arguments;
}

std::optional<std::string> read_attribute(Channel& channel, const Welcome& welcome, const std::string& name) {
  if (const auto found = welcome.attributes.find(name); found != welcome.attributes.end())
    return found->second;
  try {
    const proto::Message answer = channel.call("attr.get", {{"name", name}}, Channel::nearest());
    return proto::parse_object(answer).at("value").get<std::string>();
  } catch (const Error& error) {
    if (error.errnum() == ENOENT) return std::nullopt;
    throw;
  }
}

}  // namespace resourced::flux::module
