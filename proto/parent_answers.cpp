#include "proto/parent_answers.hpp"

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/event_json.hpp"

namespace resourced::proto {
namespace {

using nlohmann::json;

std::string_view name_of(const json& entry) {
  if (!entry.is_object()) return {};
  const auto name = entry.find("name");
  return name != entry.end() && name->is_string() ? std::string_view(name->get_ref<const std::string&>())
                                                  : std::string_view();
}

const json& member(const json& payload, const char* key) {
  const auto found = payload.find(key);
  if (found == payload.end()) throw Error(EPROTO, fmt::format("missing key: {}", key));
  return *found;
}

IdSet read_idset(const json& payload, const char* key) {
  const json& value = member(payload, key);
  if (!value.is_string()) throw Error(EPROTO, fmt::format("{} must be a string", key));
  return IdSet::parse(value.get_ref<const std::string&>());
}

class BatchReader {
 public:
  explicit BatchReader(const json& payload) : payload_(payload) {}

  void read(const json& entry) {
    try {
      const std::string_view name = name_of(entry);
      if (name == "truncate") {
        batch.truncated = true;
      } else if (name == "resource-define") {
        // The time of a definition means nothing to who follows.
        batch.events.push_back({0, DefineEvent{DefineMethod::configuration, inventory(), {}, {}}});
      } else if (auto event = decode_event(entry)) {
        batch.events.push_back(*std::move(event));
      }
    } catch (const Error& error) {
      if (batch.unreadable++ == 0) batch.defect = error.what();
    }
  }

  JournalBatch batch;

 private:
  // Read once, however many definitions there are.
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

JournalBatch parse_journal_batch(const json& payload) {
  const json& events = member(payload, "events");
  if (!events.is_array()) throw Error(EPROTO, "events must be an array");
  BatchReader reader(payload);
  reader.batch.sentinel = events.empty();
  for (const json& entry : events) reader.read(entry);
  return std::move(reader.batch);
}

ParentStatus parse_parent_status(const json& payload) {
  ParentStatus status;
  status.inventory = ResourceSet::from_json(member(payload, "R"));
  const json& drain = member(payload, "drain");
  if (!drain.is_object()) throw Error(EPROTO, "drain must be an object");
  for (const auto& [ranks, entry] : drain.items()) status.drained |= IdSet::parse(ranks);
  status.offline = read_idset(payload, "offline");
  status.torpid = read_idset(payload, "torpid");
  return status;
}

}  // namespace resourced::proto
