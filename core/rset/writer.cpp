// Writes R (RFC 20, current edition), either as text in the order in which the RFC lists the keys, or as a
// JSON value of the same content.

#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/carried_keys.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::rset {

using nlohmann::json;

namespace {

const json* part(const ResourceGroup& group, std::string_view key) {
  if (!group.extra) return nullptr;
  const auto at = group.extra->find(key);
  return at == group.extra->end() ? nullptr : &*at;
}

/// Returns the cores of an entry. Throws Error EINVAL if it has none, as can happen in the difference of two
/// sets: no reader of R would accept the entry.
const text::IdSet& required_cores(const ResourceGroup& group) {
  if (group.cores.empty())
    throw Error(EINVAL, fmt::format("rank {} has gpus but no cores: an R has a core for each rank (RFC 20)",
                                    group.ranks.first()));
  return group.cores;
}

/// Appends JSON text; separate() writes the commas between members.
class TextWriter {
 public:
  void reserve(std::size_t size) { out_.reserve(size); }
  void raw(std::string_view text) { out_ += text; }
  void separate() {
    if (out_.back() != '{' && out_.back() != '[') out_ += ',';
  }
  void key(std::string_view name) {
    separate();
    string(name);
    out_ += ':';
  }
  void string(std::string_view text) {
    if (is_plain(text)) {
      out_ += '"';
      out_ += text;
      out_ += '"';
    } else {
      value(json(text));
    }
  }
  void time(WallTime time) {
    // Most allocations have no times.
    time == WallTime{} ? raw("0.0") : value(to_number(time));
  }
  void value(const json& value) { out_ += value.dump(-1, ' ', false, json::error_handler_t::replace); }
  void ids(const text::IdSet& ids) {
    out_ += '"';
    ids.encode_to(out_);
    out_ += '"';
  }
  void members(const json::object_t& members) {
    for (const auto& [name, member] : members) {
      key(name);
      value(member);
    }
  }
  void members(const json* object) {
    if (object != nullptr) members(object->get_ref<const json::object_t&>());
  }
  std::string take() { return std::move(out_); }

 private:
  static bool is_plain(std::string_view text) {
    for (const char c : text)
      if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
    return true;
  }

  std::string out_;
};

void write_group(TextWriter& out, const ResourceGroup& group) {
  out.separate();
  out.raw(R"({"rank":)");
  out.ids(group.ranks);
  out.raw(R"(,"children":{"core":)");
  out.ids(required_cores(group));
  if (!group.gpus.empty()) {
    out.raw(R"(,"gpu":)");
    out.ids(group.gpus);
  }
  out.members(part(group, "children"));
  out.raw("}");
  out.members(part(group, "entry"));
  out.raw("}");
}

json group_json(const ResourceGroup& group) {
  json entry = json::object();
  if (const json* extra = part(group, "entry")) entry = *extra;
  json children = json::object();
  if (const json* extra = part(group, "children")) children = *extra;
  children["core"] = required_cores(group).encode();
  if (!group.gpus.empty()) children["gpu"] = group.gpus.encode();
  entry["rank"] = group.ranks.encode();
  entry["children"] = std::move(children);
  return entry;
}

}  // namespace

std::string ResourceSet::encode(bool with_scheduling) const {
  // The size of an allocation of a few nodes.
  constexpr std::size_t few = 240;
  TextWriter out;
  out.reserve(few);
  out.raw(R"({"version":1,"execution":{"R_lite":[)");
  for (const ResourceGroup& group : groups()) write_group(out, group);
  out.raw(R"(],"nodelist":[)");
  if (!empty()) out.string(nodelist().encode());
  out.raw("]");
  if (nslots_) out.raw(fmt::format(R"(,"nslots":{})", *nslots_));
  if (!properties_.empty()) {
    out.raw(R"(,"properties":{)");
    for (const auto& [name, ranks] : properties_) {
      out.key(name);
      out.ids(ranks);
    }
    out.raw("}");
  }
  out.raw(R"(,"starttime":)");
  out.time(starttime_);
  out.raw(R"(,"expiration":)");
  out.time(expiration_);
  if (carried_) out.members(carried_->execution);
  out.raw("}");
  if (carried_ && carried_->scheduling && with_scheduling) {
    out.raw(R"(,"scheduling":)");
    out.raw(*carried_->scheduling);
  }
  if (carried_ && carried_->attributes) {
    out.raw(R"(,"attributes":)");
    out.value(*carried_->attributes);
  }
  if (carried_) out.members(carried_->document);
  out.raw("}");
  return out.take();
}

json ResourceSet::to_json(bool with_scheduling) const {
  json execution = carried_ ? json(carried_->execution) : json::object();
  json& r_lite = execution["R_lite"] = json::array();
  for (const ResourceGroup& group : groups()) r_lite.push_back(group_json(group));
  json& hosts = execution["nodelist"] = json::array();
  if (!empty()) hosts.push_back(nodelist().encode());
  if (nslots_) execution["nslots"] = *nslots_;
  for (const auto& [name, ranks] : properties_) execution["properties"][name] = ranks.encode();
  execution["starttime"] = to_number(starttime_);
  execution["expiration"] = to_number(expiration_);

  json document = carried_ ? json(carried_->document) : json::object();
  document["version"] = 1;
  document["execution"] = std::move(execution);
  if (carried_ && carried_->scheduling && with_scheduling)
    document["scheduling"] = json_text::value_of(*carried_->scheduling);
  if (carried_ && carried_->attributes) document["attributes"] = *carried_->attributes;
  return document;
}

}  // namespace resourced::rset
