// The target of a request (RFC 9112, 3.2): a topic with its request, or the name of a file. The table of
// topics that are served stands here; rights are checked by the service, as for every client.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/http/request.hpp"

namespace resourced::daemon::http {

/// The type of a key of a topic's request, of which a query parameter is made.
enum class KeyType : std::uint8_t { text, number, integer, boolean };

struct Key {
  std::string_view name;
  KeyType type;
};

struct ServedTopic {
  std::string_view name;
  std::span<const Key> keys;
  /// The responses become server-sent events.
  bool streams = false;
};

/// All of them require the right to read.
[[nodiscard]] std::span<const ServedTopic> served_topics() noexcept;

/// The form of a response.
enum class Form : std::uint8_t {
  json,   ///< the payload
  plain,  ///< the text in the payload, or one line
};

/// `/api/TOPIC?KEY=VALUE`, `/metrics` or `/readyz`.
struct Ask {
  const ServedTopic* topic = nullptr;
  Form form = Form::json;
  /// A JSON object.
  std::string payload;
};

/// `/healthz`: the loop turns, or there is no response.
struct LifeSign {};

/// `/` or `/NAME`.
struct NamedFile {
  std::string name;  ///< not looked up yet
};

/// Splits and decodes a target. `last_event_id` takes the place of a journal's `after`, as a client that
/// reconnects repeats its first URL. The target may be absolute; `host` is its authority then.
struct Target {
  std::variant<Ask, LifeSign, NamedFile, Refusal> wanted;
  std::optional<std::string> host;
};
[[nodiscard]] Target read_target(const Request& request);

}  // namespace resourced::daemon::http
