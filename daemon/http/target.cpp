#include "daemon/http/target.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"
#include "daemon/http/status.hpp"

namespace resourced::daemon::http {
namespace {

constexpr std::string_view api = "/api/";

constexpr auto allocation_keys =
    std::to_array<Key>({{"targets", KeyType::text}, {"partition", KeyType::text}, {"after", KeyType::text}});
constexpr auto peer_keys = std::to_array<Key>({{"targets", KeyType::text}});
constexpr auto user_keys = std::to_array<Key>({{"userids", KeyType::text}});
constexpr auto attribute_keys = std::to_array<Key>({{"name", KeyType::text}});
constexpr auto journal_keys = std::to_array<Key>({{"targets", KeyType::text},
                                                  {"since", KeyType::number},
                                                  {"after", KeyType::integer},
                                                  {"allocations", KeyType::boolean}});
constexpr auto past_keys = std::to_array<Key>({{"at", KeyType::number}});
constexpr auto report_keys = std::to_array<Key>({{"since", KeyType::number},
                                                 {"until", KeyType::number},
                                                 {"by", KeyType::text},
                                                 {"limit", KeyType::integer}});
constexpr auto metrics_keys = std::to_array<Key>({{"nodes", KeyType::boolean}});
constexpr bool stream = true;
// All of these topics require the right to read.
constexpr auto topics = std::to_array<ServedTopic>({
    {"resource.status", {}},
    {"resource.status-at", past_keys},
    {"resource.report", report_keys},
    {"resource.sched-status", {}},
    {"resource.get", {}},
    {"resource.allocations", allocation_keys},
    {"resource.peers", peer_keys},
    {"resource.stats-get", {}},
    {"resource.journal", journal_keys, stream},
    {"resource.metrics", metrics_keys},
    {"resource.ready", {}},
    {"config.get", {}},
    {"attr.get", attribute_keys},
    {"resource.user-names", user_keys},
});

[[noreturn]] void refuse(const std::string& text) { throw Error(EINVAL, text); }

int hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// Decodes escapes. Throws Error EINVAL for an invalid escape, a control character, and bytes that are not
// UTF-8.
std::string decode(std::string_view text, bool plus_is_blank) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char letter = text[i];
    if (letter == '%') {
      const int high = i + 2 < text.size() ? hex(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex(text[i + 2]) : -1;
      if (high < 0 || low < 0) refuse("an escape of the URL is not % and two hexadecimal digits");
      letter = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (letter == '+' && plus_is_blank) {
      letter = ' ';
    }
    const auto byte = static_cast<unsigned char>(letter);
    constexpr unsigned char delete_character = 0x7F;
    if (byte < ' ' || byte == delete_character) refuse("the URL has a control character");
    decoded.push_back(letter);
  }
  if (json_text::find_invalid_utf8(decoded)) refuse("the URL is not UTF-8");
  return decoded;
}

template <class Number>
Number number_of(std::string_view name, std::string_view value) {
  const auto number = text::whole_number<Number>(value);
  if (!number) refuse(fmt::format("{} is not a number: {}", name, text::quoted(value)));
  return *number;
}

nlohmann::json typed(const Key& key, const std::string& value) {
  switch (key.type) {
    case KeyType::number:
      return number_of<double>(key.name, value);
    case KeyType::integer:
      return number_of<std::uint64_t>(key.name, value);
    case KeyType::boolean:
      if (value == "1" || value == "0") return value == "1";
      if (value != "true" && value != "false")
        refuse(fmt::format("{} is neither true nor false: {}", key.name, text::quoted(value)));
      return value == "true";
    case KeyType::text:
      break;
  }
  return value;
}

std::string keys_of(const ServedTopic& topic) {
  std::string names;
  for (const Key& key : topic.keys) names += (names.empty() ? "" : ", ") + std::string(key.name);
  return names.empty() ? "no parameters" : names;
}

nlohmann::json parameters(const ServedTopic& topic, std::string_view query) {
  nlohmann::json object = nlohmann::json::object();
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (parameter.empty()) continue;
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    const std::string name = decode(parameter.substr(0, equals), true);
    const std::string value = decode(parameter.substr(std::min(equals + 1, parameter.size())), true);
    const auto key = std::ranges::find(topic.keys, name, &Key::name);
    if (key == topic.keys.end())
      refuse(fmt::format("unknown parameter {}: {} has {}", text::quoted(name), topic.name, keys_of(topic)));
    if (!object.emplace(name, typed(*key, value)).second)
      refuse(fmt::format("the parameter {} is there twice", name));
  }
  return object;
}

std::variant<Ask, LifeSign, NamedFile, Refusal> ask(std::string_view name, std::string_view query, Form form,
                                                    const std::string& last_event_id) {
  const auto topic = std::ranges::find(topics, name, &ServedTopic::name);
  if (topic == topics.end()) {
    return Refusal{Status::not_found, fmt::format("{} is not served over HTTP", text::quoted(name)), ENOSYS};
  }
  try {
    nlohmann::json object = parameters(*topic, query);
    if (topic->streams && !last_event_id.empty())
      object["after"] = number_of<std::uint64_t>("Last-Event-ID", last_event_id);
    return Ask{&*topic, form, object.dump()};
  } catch (const Error& error) {
    return Refusal{Status::bad_request, error.what(), form == Form::json ? error.errnum() : 0};
  }
}

// Removes scheme and authority from an absolute target, and returns the authority.
std::optional<std::string> take_authority(std::string_view& target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?#"), target.size());
    std::string authority(target.substr(0, end));
    target.remove_prefix(end);
    if (target.empty()) target = "/";
    return authority;
  }
  return std::nullopt;
}

}  // namespace

Target read_target(const Request& request) {
  Target result;
  std::string_view target = request.target;
  result.host = take_authority(target);
  const std::size_t question = std::min(target.find('?'), target.size());
  try {
    const std::string path = decode(target.substr(0, question), false);
    const std::string_view query = target.substr(std::min(question + 1, target.size()));
    if (!path.starts_with('/')) refuse("the URL has no path");
    if (path.starts_with(api)) {
      result.wanted =
          ask(std::string_view(path).substr(api.size()), query, Form::json, request.last_event_id);
    } else if (path == "/metrics") {
      result.wanted = ask("resource.metrics", query, Form::plain, {});
    } else if (path == "/readyz") {
      result.wanted = ask("resource.ready", query, Form::plain, {});
    } else if (path == "/healthz") {
      result.wanted = LifeSign{};
    } else {
      result.wanted = NamedFile{path == "/" ? "index.html" : path.substr(1)};
    }
  } catch (const Error& error) {
    result.wanted = Refusal{Status::bad_request, error.what()};
  }
  return result;
}

}  // namespace resourced::daemon::http
