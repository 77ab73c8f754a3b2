// Builds a JSON value from the events of a parser, to a limited depth.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace resourced::rset {

class DomBuilder {
 public:
  /// The place where the next value goes; it must stay where it is until the value is complete.
  void start(nlohmann::json& target) {
    target_ = &target;
    open_.clear();
  }

  /// How many objects and arrays are open.
  [[nodiscard]] std::size_t depth() const noexcept { return open_.size(); }
  [[nodiscard]] nlohmann::json* innermost() const noexcept { return open_.empty() ? nullptr : open_.back(); }

  nlohmann::json* value(nlohmann::json&& value) {
    nlohmann::json* place = target_;
    if (!open_.empty() && open_.back()->is_array()) {
      place = &open_.back()->emplace_back();
    }
    *place = std::move(value);
    return place;
  }
  nlohmann::json* open(nlohmann::json&& empty) {
    nlohmann::json* place = value(std::move(empty));
    open_.push_back(place);
    return place;
  }
  void key(const std::string& key) { target_ = &(*open_.back())[key]; }
  void close() { open_.pop_back(); }

 private:
  nlohmann::json* target_ = nullptr;
  std::vector<nlohmann::json*> open_;
};

}  // namespace resourced::rset
