// Reads an R document, of either edition of RFC 20, into a ResourceSet. Its members are taken out of a JSON
// value or out of the text first, so that one function checks them in one order, wherever they come from.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/rset/carried_keys.hpp"
#include "core/rset/entry_collector.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::rset {

/// Reads the text of an opaque `scheduling`, and returns it without white space between its tokens. Throws
/// Error EINVAL that begins with the path for anything but an object that is suitable for it.
[[nodiscard]] std::string read_scheduling(std::string_view text, std::string_view path);

/// Takes the entries of execution.nodelist one by one.
class HostCollector {
 public:
  /// Adds an entry. Throws Error EINVAL that names its path.
  void add(std::string_view entry);
  /// Throws Error EINVAL for the entry that would be added next: `execution.nodelist[N]: text`.
  [[noreturn]] void fail(std::string_view text) const;
  [[nodiscard]] text::Hostlist take() { return std::move(hosts_); }

 private:
  text::Hostlist hosts_;
  std::size_t count_ = 0;
};

/// The members of a document that are not checked yet.
struct Members {
  /// The values that are read: the document, its members, and the members of its `execution`. Other keys are
  /// unknown.
  enum Key : std::size_t {
    document,
    version,
    scheduling,
    execution,
    r_lite,
    nodelist,
    nslots,
    properties,
    starttime,
    expiration,
    unknown
  };
  /// Returns the key with this name among those from `first` up to, but not including, `end`.
  [[nodiscard]] static Key find(std::string_view name, Key first, Key end);

  /// The values by their keys; null for a member that is missing.
  std::array<const nlohmann::json*, unknown> values{};
  /// The entries that were taken out of `R_lite`, before those that its value still has.
  EntryCollector entries;
  /// The hosts that were taken out of `nodelist`, before those that its value still has.
  HostCollector hosts;
  /// Unknown keys; `attributes` is among those of the document.
  CarriedKeys carried;
};

class DocumentReader {
 public:
  /// Checks the members of a document, and makes a set of them. Throws Error EINVAL that names the path.
  [[nodiscard]] static ResourceSet read(Members&& members);

 private:
  explicit DocumentReader(Members& members) : members_(members) {}

  [[nodiscard]] const nlohmann::json& required(Members::Key key) const;
  void document();
  void graph(const nlohmann::json& graph);
  void execution();
  void properties(const nlohmann::json& properties);
  [[nodiscard]] WallTime time(Members::Key key) const;
  void times();
  void carry();

  Members& members_;
  ResourceSet set_;
};

}  // namespace resourced::rset
