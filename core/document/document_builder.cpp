#include "core/document/document_builder.hpp"

#include <fmt/format.h>

#include "core/document/document.hpp"
#include "core/error.hpp"
#include "core/json/json_path.hpp"

namespace resourced {

void DocumentBuilder::start_object() { open(nlohmann::json::object()); }

void DocumentBuilder::start_array() { open(nlohmann::json::array()); }

void DocumentBuilder::key(std::string name) {
  Open& object = open_.back();
  auto& members = object.value->get_ref<nlohmann::json::object_t&>();
  // Programs mostly write keys in order.
  const std::size_t before = members.size();
  const auto member = members.try_emplace(members.end(), std::move(name));
  object.key = &member->first;
  object.slot = &member->second;
  if (members.size() == before) fail("the key is given twice");
}

void DocumentBuilder::end() { open_.pop_back(); }

nlohmann::json* DocumentBuilder::place(nlohmann::json&& value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Open& last = open_.back();
  if (last.value->is_array()) {
    auto& items = last.value->get_ref<nlohmann::json::array_t&>();
    return &items.emplace_back(std::move(value));
  }
  nlohmann::json* slot = std::exchange(last.slot, nullptr);
  *slot = std::move(value);
  return slot;
}

// A container is only moved by the growth of the array it stands in, and that cannot happen while it is open.
void DocumentBuilder::open(nlohmann::json&& container) {
  if (open_.size() == max_document_depth) {
    throw Error(EINVAL, fmt::format("the document is nested more than {} levels deep", max_document_depth));
  }
  open_.push_back({place(std::move(container)), nullptr, nullptr});
}

void DocumentBuilder::fail(const std::string& reason) const {
  const std::string where = path();
  throw Error(EINVAL, where.empty() ? reason : fmt::format("{}: {}", where, reason));
}

std::string DocumentBuilder::path() const {
  std::string text;
  for (const Open& open : open_) {
    const bool innermost = &open == &open_.back();
    if (open.value->is_array()) {
      text += fmt::format("[{}]", open.value->size() - (innermost ? 0U : 1U));
    } else if (!innermost || open.slot != nullptr) {
      append_path_key(text, *open.key);
    }
  }
  return text;
}

}  // namespace resourced
