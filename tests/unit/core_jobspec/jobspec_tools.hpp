// Shared by the tests of jobspecs: edits of a valid document, and the verdict of a check.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::test {

/// A change to a document: the JSON pointer of a value, and its new text in JSON; without a text the value is
/// removed.
struct Edit {
  const char* pointer;
  const char* value;
};

inline nlohmann::json edited(nlohmann::json document, std::initializer_list<Edit> edits) {
  for (const Edit& edit : edits) {
    const nlohmann::json::json_pointer pointer(edit.pointer);
    if (edit.value != nullptr) {
      document[pointer] = nlohmann::json::parse(edit.value);
      continue;
    }
    nlohmann::json& parent = document[pointer.parent_pointer()];
    if (parent.is_array()) {
      parent.erase(static_cast<std::size_t>(std::stoul(pointer.back())));
    } else {
      parent.erase(pointer.back());
    }
  }
  return document;
}

/// The text of the error that a check throws, or "valid".
template <class Check>
std::string verdict(Check check) {
  try {
    check();
  } catch (const Error& error) {
    return error.what();
  }
  return "valid";
}

}  // namespace resourced::test
