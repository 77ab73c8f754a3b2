// Takes the entries of execution.R_lite one by one, from a document or from its text, and makes the groups of
// the resource set. Most entries repeat the children of an earlier one, so the text of the children is looked
// up first.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/group_table.hpp"

namespace resourced::rset {

class EntryCollector {
 public:
  /// One entry of R_lite; a member is null if the entry lacks the key.
  struct Entry {
    const std::string* rank = nullptr;
    bool has_children = false;
    const std::string* core = nullptr;
    const std::string* gpu = nullptr;
    std::shared_ptr<const nlohmann::json> extra = nullptr;
  };

  /// Adds an entry. Throws Error EINVAL that names its path.
  void add(const Entry& entry);
  void add(const nlohmann::json& entry);
  /// Throws Error EINVAL for the entry that would be added next: `execution.R_lite[N].PLACE: text`.
  [[noreturn]] void fail(std::string_view place, std::string_view text) const;

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::vector<ResourceGroup> finish();

 private:
  [[nodiscard]] text::IdSet ids(std::string_view place, const std::string& text) const;
  GroupTable::Children children(const Entry& entry);

  GroupTable groups_;
  /// The kinds of entries that were added, by their text; empty while there is one kind.
  std::unordered_map<std::string, GroupTable::Children> known_;
  std::string key_;
  std::string last_key_;
  GroupTable::Children last_ = 0;
  std::size_t count_ = 0;
};

}  // namespace resourced::rset
