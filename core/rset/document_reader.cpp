#include "core/rset/document_reader.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/carried_keys.hpp"
#include "core/rset/graph.hpp"
#include "core/rset/json_check.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/target_table.hpp"

namespace resourced::rset {

using nlohmann::json;
using text::Hostlist;

namespace {

bool is_document_key(std::string_view key) {
  return key == "version" || key == "execution" || key == "scheduling" || key == "attributes";
}

bool is_execution_key(std::string_view key) {
  return key == "R_lite" || key == "nodelist" || key == "nslots" || key == "properties" ||
         key == "starttime" || key == "expiration";
}

json take(const json& value) { return value; }
json take(json& value) { return std::move(value); }

/// Returns the carried keys of a document, copied or (if it is not const) moved.
template <class Json>
std::shared_ptr<const CarriedKeys> carried_keys(Json& document, std::optional<std::string> scheduling) {
  CarriedKeys carried;
  bool any = scheduling.has_value();
  carried.scheduling = std::move(scheduling);
  const auto carry = [&](std::string_view path, Json& value) {
    limit_depth(value, path, ResourceSet::max_depth - 1);
    any = true;
    return take(value);
  };
  for (auto item = document.begin(); item != document.end(); ++item) {
    if (item.key() == "attributes") carried.attributes = carry("attributes", *item);
    if (!is_document_key(item.key()))
      carried.document[item.key()] = carry(member_path("", item.key()), *item);
  }
  const auto execution = document.find("execution");
  if (execution != document.end()) {
    for (auto item = execution->begin(); item != execution->end(); ++item)
      if (!is_execution_key(item.key()))
        carried.execution[item.key()] = carry(member_path("execution", item.key()), *item);
  }
  return any ? std::make_shared<const CarriedKeys>(std::move(carried)) : nullptr;
}

void check_attributes(const json& attributes) {
  expect_object(attributes, "attributes");
  const json* system = member(attributes, "system");
  if (system == nullptr) return;
  expect_object(*system, "attributes.system");
  if (const json* scheduler = member(*system, "scheduler"))
    expect_object(*scheduler, "attributes.system.scheduler");
}

Hostlist read_nodelist(const json& nodelist) {
  expect_array(nodelist, "execution.nodelist");
  Hostlist hosts;
  std::size_t index = 0;
  for (const json& entry : nodelist) {
    const auto path = [&] { return fmt::format("execution.nodelist[{}]", index); };
    if (!entry.is_string()) fail_at(path(), "is not a string");
    try {
      hosts.append(Hostlist::parse(entry.get_ref<const std::string&>()));
    } catch (const Error& error) {
      fail_at(path(), error.what());
    }
    ++index;
  }
  return hosts;
}

WallTime read_time(const json& execution, std::string_view key) {
  const json* value = member(execution, key);
  if (value == nullptr) return {};
  if (!value->is_number()) fail_at(member_path("execution", key), "is not a number");
  const double time = value->get<double>();
  if (!std::isfinite(time) || time < 0) fail_at(member_path("execution", key), "is not a time");
  return wall_time(time);
}

}  // namespace

std::string read_scheduling(std::string_view text, std::string_view path) {
  constexpr std::size_t depth = ResourceSet::max_depth - 1;
  json_text::JsonReader reader(text, depth, json_text::JsonManners::lenient);
  const bool is_object = reader.next() == '{';
  bool is_read = true;
  if (is_object) {
    is_read = reader.object([&](const std::string& key) {
      if (key == "writer" && reader.next() != '"') fail_at(member_path(path, key), "is not a string");
      return reader.skip();
    });
  } else {
    is_read = reader.skip();
  }
  if (is_read && reader.at_end()) {
    if (!is_object) fail_at(path, "is not an object");
    return json_text::without_blanks(text);
  }
  using Kind = json_text::JsonFault::Kind;
  const json_text::JsonFault fault = std::move(reader).fault();
  if (fault.kind == Kind::number) fail_at(path, "holds a number that is out of range");
  if (fault.kind == Kind::depth) fail_at(path, fmt::format("is nested deeper than {} levels", depth));
  fail_at(path,
          fmt::format("is not {} (at byte {})", fault.kind == Kind::utf8 ? "UTF-8" : "JSON", fault.at + 1));
}

ResourceSet ResourceSet::from_json(const json& document) { return DocumentReader::read(document); }

ResourceSet ResourceSet::from_json(json&& document) {
  EntryCollector entries;
  return DocumentReader::read(std::move(document), entries);
}

ResourceSet ResourceSet::parse(std::string_view text) { return read_text(text); }

ResourceSet DocumentReader::read(const json& document) {
  EntryCollector entries;
  DocumentReader reader(entries);
  reader.set_.carried_ = carried_keys(document, reader.document(document));
  return std::move(reader.set_);
}

ResourceSet DocumentReader::read(json&& document, EntryCollector& entries) {
  DocumentReader reader(entries);
  reader.set_.carried_ = carried_keys(document, reader.document(document));
  return std::move(reader.set_);
}

std::optional<std::string> DocumentReader::document(const json& document) {
  if (!document.is_object()) fail_at("", "R is not an object");
  const json& version = required(document, "", "version");
  if (!version.is_number_integer() || version != 1) fail_at("version", "is not the integer 1");
  std::optional<std::string> scheduling;
  if (const json* value = member(document, "scheduling")) {
    // Writing a value as text recurses as deep as it is nested.
    limit_depth(*value, "scheduling", ResourceSet::max_depth - 1);
    constexpr auto replace = json::error_handler_t::replace;
    const auto text = json_text::opaque_text(*value);
    scheduling =
        read_scheduling(text ? std::string(*text) : value->dump(-1, ' ', false, replace), "scheduling");
  }
  if (const json* attributes = member(document, "attributes")) check_attributes(*attributes);
  if (const json* value = member(document, "execution")) {
    execution(expect_object(*value, "execution"));
  } else {
    const json kept = json_text::value_of(scheduling.value_or("{}"));
    const json* const found = member(kept, "graph");
    if (found == nullptr) fail_at("execution", "is missing");
    graph(*found);
  }
  return scheduling;
}

void DocumentReader::graph(const json& graph) {
  GraphResources found = resources_of_graph(graph, "scheduling.graph");
  set_ = ResourceSet(std::move(found.groups), std::move(found.hosts));
  set_.properties_ = std::move(found.properties);
}

void DocumentReader::execution(const json& execution) {
  const json& r_lite = expect_array(required(execution, "execution", "R_lite"), "execution.R_lite");
  for (const json& entry : r_lite) entries_.add(entry);
  std::vector<ResourceGroup> groups = entries_.finish();

  Hostlist hosts = read_nodelist(required(execution, "execution", "nodelist"));
  std::size_t ranks = 0;
  for (const ResourceGroup& group : groups) ranks += group.ranks.count();
  if (hosts.size() != ranks)
    fail_at("execution.nodelist", fmt::format("has {} hosts for {} ranks", hosts.size(), ranks));
  if (ranks > ResourceSet::max_targets)
    fail_at("execution.R_lite", fmt::format("has more than {} ranks", ResourceSet::max_targets));
  if (ranks > 0) set_.table_ = std::make_shared<const TargetTable>(std::move(groups), std::move(hosts));

  if (const json* value = member(execution, "properties")) properties(*value);
  times(execution);
  if (const json* nslots = member(execution, "nslots")) {
    if (!nslots->is_number_integer()) fail_at("execution.nslots", "is not an integer");
    if (*nslots < 1) fail_at("execution.nslots", "is less than 1");
    set_.nslots_ = nslots->get<std::uint64_t>();
  }
}

void DocumentReader::properties(const json& properties) {
  expect_object(properties, "execution.properties");
  for (const auto& [name, value] : properties.items()) {
    const auto path = [&key = name] { return member_path("execution.properties", key); };
    const std::string defect = property_name_defect(name);
    if (!defect.empty()) fail_at(path(), defect);
    if (!value.is_string()) fail_at(path(), "is not a string");
    text::IdSet ranks;
    try {
      ranks = text::IdSet::parse(value.get_ref<const std::string&>());
    } catch (const Error& error) {
      fail_at(path(), error.what());
    }
    if (!set_.ranks().includes(ranks))
      fail_at(path(), fmt::format("rank {} is not in R_lite", (ranks - set_.ranks()).first()));
    if (!ranks.empty()) set_.properties_.emplace(name, std::move(ranks));
  }
}

void DocumentReader::times(const json& execution) {
  set_.starttime_ = read_time(execution, "starttime");
  set_.expiration_ = read_time(execution, "expiration");
  if (set_.expiration_ != WallTime{} && set_.expiration_ <= set_.starttime_)
    fail_at("execution.expiration", "is not after starttime");
}

}  // namespace resourced::rset
