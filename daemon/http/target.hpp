// Reads the target of a request (RFC 9112, 3.2): a topic with its request, or the name of a file. The table
// of served topics is in target.cpp; the service checks rights, as for every client.
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
  /// Whether the responses become server-sent events.
  bool streams = false;
};

/// The form of a response.
enum class Form : std::uint8_t {
  json,   ///< the payload
  plain,  ///< the text in the payload, or one line
};

/// A request to the service: `/api/TOPIC?KEY=VALUE`, `/metrics` or `/readyz`.
struct Ask {
  const ServedTopic* topic = nullptr;
  Form form = Form::json;
  /// The payload, a JSON object.
  std::string payload;
};

/// The request `/healthz`: it is answered if the loop runs.
struct LifeSign {};

/// A request for a file: `/` or `/NAME`.
struct NamedFile {
  std::string name;  ///< not yet checked to exist
};

/// Splits and decodes a target. `last_event_id` replaces a journal's `after`, because a client that
/// reconnects repeats its first URL. The target may be absolute; `host` is its authority then.
struct Target {
  std::variant<Ask, LifeSign, NamedFile, Refusal> wanted;
  std::optional<std::string> host;
};
[[nodiscard]] Target read_target(const Request& request);

}  // namespace resourced::daemon::http
