#include "core/rset/entry_collector.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/json_check.hpp"

namespace resourced::rset {

using nlohmann::json;
using text::IdSet;

namespace {

std::string entry_path(std::size_t index, std::string_view place) {
  return fmt::format("execution.R_lite[{}]{}{}", index, place.empty() ? "" : ".", place);
}

/// Returns the members of an object except two known ones.
json others(const json& object, std::string_view one, std::string_view two) {
  json rest = json::object();
  for (const auto& [key, value] : object.items())
    if (key != one && key != two) rest[key] = value;
  return rest;
}

}  // namespace

void EntryCollector::fail(std::string_view place, std::string_view text) const {
  fail_at(entry_path(count_, place), text);
}

IdSet EntryCollector::ids(std::string_view place, const std::string& text) const {
  try {
    return IdSet::parse(text);
  } catch (const Error& error) {
    fail(place, error.what());
  }
}

GroupTable::Children EntryCollector::children(const Entry& entry) {
  // The key starts with the sizes of its parts, so that different entries have different keys. The key of a
  // few ids is short enough for a string without memory of its own.
  const std::array<std::uint32_t, 2> sizes{
      static_cast<std::uint32_t>(entry.core->size()),
      static_cast<std::uint32_t>(entry.gpu != nullptr ? entry.gpu->size() : 0)};
  key_.assign(reinterpret_cast<const char*>(sizes.data()), sizeof(sizes));
  key_ += *entry.core;
  if (entry.gpu != nullptr) key_ += *entry.gpu;
  if (entry.extra) key_ += entry.extra->dump(-1, ' ', false, json::error_handler_t::replace);
  if (key_ == last_key_) return last_;

  // Most sets have one kind of entry, which needs no search.
  if (known_.empty() && count_ > 0) known_.emplace(last_key_, last_);
  const auto known = known_.find(key_);
  if (known == known_.end()) {
    IdSet cores = ids("children.core", *entry.core);
    if (cores.empty()) fail("children.core", "is empty");
    IdSet gpus = entry.gpu != nullptr ? ids("children.gpu", *entry.gpu) : IdSet();
    if (entry.gpu != nullptr && gpus.empty()) fail("children.gpu", "is empty");
    last_ = groups_.children(std::move(cores), std::move(gpus), entry.extra);
    if (count_ > 0) known_.emplace(key_, last_);
  } else {
    last_ = known->second;
  }
  last_key_.swap(key_);
  return last_;
}

void EntryCollector::add(const Entry& entry) {
  if (entry.rank == nullptr) fail("rank", "is missing");
  if (!entry.has_children) fail("children", "is missing");
  if (entry.core == nullptr) fail("children.core", "is missing");
  const IdSet ranks = ids("rank", *entry.rank);
  if (ranks.empty()) fail("rank", "is empty");
  if (entry.extra) limit_depth(*entry.extra, entry_path(count_, ""), ResourceSet::max_depth);
  groups_.add(ranks, children(entry), count_);
  ++count_;
}

void EntryCollector::add(const json& entry) {
  if (!entry.is_object()) fail("", "is not an object");
  const auto text = [&](const json* value, std::string_view place) -> const std::string* {
    if (value == nullptr) return nullptr;
    if (!value->is_string()) fail(place, "is not a string");
    return &value->get_ref<const std::string&>();
  };
  Entry fields;
  fields.rank = text(member(entry, "rank"), "rank");
  json extra = json::object();
  if (entry.size() > 2) extra["entry"] = others(entry, "rank", "children");
  if (const json* children = member(entry, "children")) {
    if (!children->is_object()) fail("children", "is not an object");
    fields.has_children = true;
    fields.core = text(member(*children, "core"), "children.core");
    fields.gpu = text(member(*children, "gpu"), "children.gpu");
    const std::size_t known = (fields.core != nullptr ? 1U : 0U) + (fields.gpu != nullptr ? 1U : 0U);
    if (children->size() > known) extra["children"] = others(*children, "core", "gpu");
  }
  if (!extra.empty()) {
    fields.extra = std::make_shared<const json>(std::move(extra));
  }
  add(fields);
}

std::vector<ResourceGroup> EntryCollector::finish() {
  return groups_.finish(GroupTable::Repeats::refused, [](const GroupTable::Conflict& conflict) {
    return Error(EINVAL, fmt::format("{}: rank {} {}", entry_path(conflict.source, "rank"), conflict.rank,
                                     conflict.text));
  });
}

}  // namespace resourced::rset
