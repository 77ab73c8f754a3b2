// Long texts, as an R, that events and states name instead of having them inside.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace resourced::proto {

using DocumentText = std::shared_ptr<const std::string>;

/// The documents of an event or a state, by name.
class Documents {
 public:
  /// Gives each text a name of its own, and the same text always the same one.
  using Name = std::string (*)(std::string_view text);
  explicit Documents(Name name) : name_(name) {}

  /// Returns the name.
  std::string add(DocumentText text) {
    std::string name = name_(*text);
    texts_.emplace(name, std::move(text));
    return name;
  }
  std::string add(std::string text) { return add(std::make_shared<const std::string>(std::move(text))); }

  [[nodiscard]] const std::map<std::string, DocumentText>& texts() const noexcept { return texts_; }

 private:
  Name name_;
  std::map<std::string, DocumentText> texts_;
};

/// Finds a document by its name. Throws Error if there is none.
using FindDocument = std::function<DocumentText(const std::string& name)>;

}  // namespace resourced::proto
