#include "core/rset/document_reader.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/graph.hpp"
#include "core/rset/json_check.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/target_table.hpp"

namespace resourced::rset {

using nlohmann::json;
using text::Hostlist;

namespace {

constexpr std::array<std::string_view, Members::unknown> names{
    "",         "version", "scheduling", "execution", "R_lite",
    "nodelist", "nslots",  "properties", "starttime", "expiration"};

std::string path_of(Members::Key key) {
  return key < Members::r_lite ? std::string(names[key]) : fmt::format("execution.{}", names[key]);
}

/// Takes the members of an object whose known keys are those from `first` up to `end`.
void take(const json& object, Members::Key first, Members::Key end, Members& members,
          json::object_t& unknown) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.get_ref<const json::object_t&>()) {
    const Members::Key key = Members::find(name, first, end);
    if (key == Members::unknown) {
      unknown.emplace(name, value);
    } else {
      members.values[key] = &value;
    }
  }
}

void check_attributes(const json& attributes) {
  expect_object(attributes, "attributes");
  const json* system = member(attributes, "system");
  if (system == nullptr) return;
  expect_object(*system, "attributes.system");
  if (const json* scheduler = member(*system, "scheduler"))
    expect_object(*scheduler, "attributes.system.scheduler");
}

}  // namespace

void HostCollector::add(std::string_view entry) {
  try {
    Hostlist read = Hostlist::parse(entry);
    if (count_ == 0) {
      hosts_ = std::move(read);
    } else {
      hosts_.append(read);
    }
  } catch (const Error& error) {
    fail(error.what());
  }
  ++count_;
}

void HostCollector::fail(std::string_view text) const {
  fail_at(fmt::format("execution.nodelist[{}]", count_), text);
}

std::string read_scheduling(std::string_view text, std::string_view path) {
  constexpr std::size_t depth = ResourceSet::max_depth - 1;
  json_text::JsonReader reader(text, depth, json_text::JsonManners::lenient);
  const bool is_object = reader.next() == '{';
  bool is_read = true;
  if (is_object) {
    is_read = reader.object([&](std::string_view key) {
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

Members::Key Members::find(std::string_view name, Key first, Key end) {
  const auto last = names.begin() + end;
  const auto at = std::find(names.begin() + first, last, name);
  return at == last ? unknown : static_cast<Key>(at - names.begin());
}

ResourceSet ResourceSet::from_json(const json& document) {
  Members members;
  members.values[Members::document] = &document;
  take(document, Members::version, Members::r_lite, members, members.carried.document);
  if (const json* execution = members.values[Members::execution])
    take(*execution, Members::r_lite, Members::unknown, members, members.carried.execution);
  return DocumentReader::read(std::move(members));
}

ResourceSet DocumentReader::read(Members&& members) {
  DocumentReader reader(members);
  reader.document();
  reader.carry();
  return std::move(reader.set_);
}

const json& DocumentReader::required(Members::Key key) const {
  if (members_.values[key] == nullptr) fail_at(path_of(key), "is missing");
  return *members_.values[key];
}

void DocumentReader::document() {
  if (!members_.values[Members::document]->is_object()) fail_at("", "R is not an object");
  const json& version = required(Members::version);
  if (!version.is_number_integer() || version != 1) fail_at("version", "is not the integer 1");
  CarriedKeys& carried = members_.carried;
  if (const json* value = members_.values[Members::scheduling]) {
    // Writing a value as text recurses as deep as it is nested.
    limit_depth(*value, "scheduling", ResourceSet::max_depth - 1);
    constexpr auto replace = json::error_handler_t::replace;
    const auto text = json_text::opaque_text(*value);
    carried.scheduling =
        read_scheduling(text ? std::string(*text) : value->dump(-1, ' ', false, replace), "scheduling");
  }
  const auto attributes = carried.document.find("attributes");
  if (attributes != carried.document.end()) check_attributes(attributes->second);
  if (members_.values[Members::execution] != nullptr) {
    execution();
  } else {
    const json kept = json_text::value_of(carried.scheduling.value_or("{}"));
    const json* const found = member(kept, "graph");
    if (found == nullptr) fail_at("execution", "is missing");
    graph(*found);
  }
}

void DocumentReader::graph(const json& graph) {
  GraphResources found = resources_of_graph(graph, "scheduling.graph");
  set_ = ResourceSet(std::move(found.groups), std::move(found.hosts));
  set_.properties_ = std::move(found.properties);
}

void DocumentReader::execution() {
  expect_object(required(Members::execution), "execution");
  for (const json& entry : expect_array(required(Members::r_lite), "execution.R_lite"))
    members_.entries.add(entry);
  std::vector<ResourceGroup> groups = members_.entries.finish();

  for (const json& entry : expect_array(required(Members::nodelist), "execution.nodelist")) {
    if (!entry.is_string()) members_.hosts.fail("is not a string");
    members_.hosts.add(entry.get_ref<const std::string&>());
  }
  Hostlist hosts = members_.hosts.take();
  std::size_t ranks = 0;
  for (const ResourceGroup& group : groups) ranks += group.ranks.count();
  if (hosts.size() != ranks)
    fail_at("execution.nodelist", fmt::format("has {} hosts for {} ranks", hosts.size(), ranks));
  if (ranks > ResourceSet::max_targets)
    fail_at("execution.R_lite", fmt::format("has more than {} ranks", ResourceSet::max_targets));
  if (ranks > 0) set_.table_ = std::make_shared<const TargetTable>(std::move(groups), std::move(hosts));

  if (const json* value = members_.values[Members::properties]) properties(*value);
  times();
  if (const json* nslots = members_.values[Members::nslots]) {
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

WallTime DocumentReader::time(Members::Key key) const {
  const json* value = members_.values[key];
  if (value == nullptr) return {};
  if (!value->is_number()) fail_at(path_of(key), "is not a number");
  const double time = value->get<double>();
  if (!std::isfinite(time) || time < 0) fail_at(path_of(key), "is not a time");
  return wall_time(time);
}

void DocumentReader::times() {
  set_.starttime_ = time(Members::starttime);
  set_.expiration_ = time(Members::expiration);
  if (set_.expiration_ != WallTime{} && set_.expiration_ <= set_.starttime_)
    fail_at("execution.expiration", "is not after starttime");
}

/// Keeps the members that are written as they were read.
void DocumentReader::carry() {
  CarriedKeys& carried = members_.carried;
  const bool any = carried.scheduling || !carried.document.empty() || !carried.execution.empty();
  if (!any) return;
  const auto check = [](const json::object_t& object, std::string_view path) {
    for (const auto& [key, value] : object)
      limit_depth(value, member_path(path, key), ResourceSet::max_depth - 1);
  };
  check(carried.document, "");
  check(carried.execution, "execution");
  if (auto attributes = carried.document.extract("attributes"); !attributes.empty())
    carried.attributes = std::move(attributes.mapped());
  set_.carried_ = std::make_shared<const CarriedKeys>(std::move(carried));
}

}  // namespace resourced::rset
