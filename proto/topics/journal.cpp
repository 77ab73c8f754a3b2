#include "proto/topics/journal.hpp"

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/event_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using rset::ResourceSet;

namespace {

using nlohmann::json;

void append_last(std::string& text, std::optional<EventNumber> last) {
  if (last) text += fmt::format(R"(,"last":{})", *last);
}

std::string_view name_of(const json& entry) {
  if (!entry.is_object()) return {};
  const auto name = entry.find("name");
  return name != entry.end() && name->is_string() ? std::string_view(name->get_ref<const std::string&>())
                                                  : std::string_view();
}

class BatchReader {
 public:
  explicit BatchReader(const json& payload) : payload_(payload) {}

  void read(const json& entry) {
    try {
      const std::string_view name = name_of(entry);
      if (name == truncate_name) {
        batch.truncated = true;
      } else if (name == define_name) {
        // A consumer does not use the time of a definition.
        batch.events.push_back(
            {{}, module::DefineEvent{module::DefineMethod::configuration, inventory(), {}, {}}});
      } else if (auto event = decode_event(entry)) {
        batch.events.push_back(*std::move(event));
      }
    } catch (const Error& error) {
      if (batch.unreadable++ == 0) batch.defect = error.what();
    }
  }

  JournalBatch batch;

 private:
  // Returns the R of the response, which is read once for all definitions.
  std::shared_ptr<const ResourceSet> inventory() {
    if (!inventory_) {
      const auto found = payload_.find("R");
      if (found == payload_.end()) return nullptr;
      inventory_ = std::make_shared<const ResourceSet>(ResourceSet::from_json(*found));
    }
    return inventory_;
  }

  const json& payload_;
  std::shared_ptr<const ResourceSet> inventory_;
};

}  // namespace

json encode_journal(const JournalRequest& request) {
  json payload = json::object();
  if (request.since) payload["since"] = to_number(*request.since);
  if (request.targets) payload["targets"] = *request.targets;
  if (request.allocations) payload["allocations"] = true;
  if (request.own) payload["own"] = true;
  if (request.after) payload["after"] = *request.after;
  return payload;
}

JournalRequest parse_journal(const json& payload) {
  JournalRequest request;
  if (payload.contains("since")) request.since = wall_time(required_number(payload, "since"));
  request.targets = optional_string(payload, "targets");
  request.allocations = optional_flag(payload, "allocations");
  request.own = optional_flag(payload, "own");
  if (const auto after = payload.find("after"); after != payload.end()) {
    if (!after->is_number_unsigned()) throw Error(EPROTO, "after must be the number of an event");
    request.after = after->get<EventNumber>();
  }
  return request;
}

std::string encode_journal_batch(std::span<const std::string_view> events, std::string_view resources,
                                 std::optional<EventNumber> last) {
  std::string text = R"({"events":[)";
  for (const std::string_view event : events) {
    if (text.back() != '[') text += ',';
    text += event;
  }
  text += ']';
  if (!resources.empty()) {
    text += R"(,"R":)";
    text += resources;
  }
  append_last(text, last);
  text += '}';
  return text;
}

std::string encode_truncation(WallTime timestamp, std::optional<EventNumber> last) {
  std::string text = R"({"events":[{"timestamp":)";
  append_number(text, to_number(timestamp));
  text += R"(,"name":")";
  text += truncate_name;
  text += R"("}])";
  append_last(text, last);
  text += '}';
  return text;
}

const json* find_journal_events(const json& payload) {
  const auto events = payload.find("events");
  return events != payload.end() && events->is_array() ? &*events : nullptr;
}

std::optional<EventNumber> find_journal_last(const json& payload) {
  const auto last = payload.find("last");
  if (last == payload.end() || !last->is_number_unsigned()) return std::nullopt;
  return last->get<EventNumber>();
}

JournalBatch parse_journal_batch(const json& payload) {
  const json& events = required_array(payload, "events");
  BatchReader reader(payload);
  reader.batch.sentinel = events.empty();
  for (const json& entry : events) reader.read(entry);
  return std::move(reader.batch);
}

}  // namespace resourced::proto::topics
