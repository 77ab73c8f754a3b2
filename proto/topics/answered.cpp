#include "proto/topics/answered.hpp"

#include <cerrno>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/time.hpp"
#include "proto/actor_json.hpp"
#include "proto/drain_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

const nlohmann::json& answered(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end())
    throw Error(EPROTO, fmt::format("the daemon's answer has no \"{}\"", key));
  return *found;
}

const nlohmann::json& answered_object(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = answered(object, key);
  if (!value.is_object()) throw Error(EPROTO, fmt::format("the daemon's answer: {}: not an object", key));
  return value;
}

const std::string& answered_text(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = answered(object, key);
  if (!value.is_string()) throw Error(EPROTO, fmt::format("the daemon's answer: {}: not a string", key));
  return value.get_ref<const std::string&>();
}

std::string_view reason_text(const module::Drain& drain) {
  return drain.reason ? std::string_view(*drain.reason) : std::string_view();
}

void append_cause(std::string& out, const module::Drain& drain) {
  append_terms(out, drain);
  if (drain.by) {
    append_key(out, "by");
    append_actor(out, *drain.by);
  }
}

void append_shown_drain(std::string& out, const char* time_key, const module::Drain& drain) {
  append_member(out, time_key, drain.timestamp);
  append_member(out, "reason", reason_text(drain));
  append_cause(out, drain);
}

namespace {

class AnsweredTerms {
 public:
  AnsweredTerms(const std::string& targets, const nlohmann::json& entry) : targets_(targets), entry_(entry) {}

  /// Returns a text; an empty one means none.
  [[nodiscard]] std::optional<std::string> text(const char* key) const {
    const auto found = entry_.find(key);
    if (found == entry_.end() || found->is_null()) return std::nullopt;
    if (!found->is_string()) refuse(key, "string");
    return found->get_ref<const std::string&>().empty() ? std::nullopt
                                                        : std::optional(found->get<std::string>());
  }
  [[nodiscard]] std::optional<WallTime> time(const char* key) const {
    const auto found = entry_.find(key);
    if (found == entry_.end()) return std::nullopt;
    if (!found->is_number()) refuse(key, "number");
    return wall_time(found->get<double>());
  }

 private:
  [[noreturn]] void refuse(const char* key, const char* type) const {
    throw Error(EPROTO, fmt::format("the daemon's answer: drain {}: {}: not a {}", targets_, key, type));
  }

  const std::string& targets_;
  const nlohmann::json& entry_;
};

}  // namespace

module::Drain read_shown_drain(const std::string& targets, const nlohmann::json& entry,
                               const char* time_key) {
  (void)answered(entry, time_key);
  (void)answered(entry, "reason");
  const AnsweredTerms terms(targets, entry);
  module::Drain drain{read_terms(terms), *terms.time(time_key)};
  if (const auto by = entry.find("by"); by != entry.end()) {
    try {
      drain.by = read_actor(*by);
    } catch (const Error& error) {
      throw Error(EPROTO, fmt::format("the daemon's answer: drain {}: by: {}", targets, error.what()));
    }
  }
  return drain;
}

}  // namespace resourced::proto::topics
