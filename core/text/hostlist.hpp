// An ordered list of host names, repeats allowed, and its compressed text form (RFC 29).
// The list is kept as runs `prefix[first-last]suffix`, so its cost follows the expressions, not the hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/idset.hpp"

namespace resourced {

class Hostlist {
 public:
  /// The most hosts that one bracketed expression may stand for.
  static constexpr std::size_t max_expansion = std::size_t{1} << 20;

  Hostlist() = default;

  /// Reads RFC 29 text. Throws Error EINVAL that shows the text and the place, or ERANGE for an expression
  /// of more than max_expansion hosts.
  [[nodiscard]] static Hostlist parse(std::string_view text);

  /// Compressed text; the order is kept.
  [[nodiscard]] std::string encode() const;

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  /// The host at a position. Requires position < size().
  [[nodiscard]] std::string at(std::size_t position) const;
  /// The first position of a host. Linear in the runs; HostIndex is for many look-ups.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view host) const;

  /// Adds one host name, which is not parsed: Throws Error EINVAL if it is not a host name.
  void append(std::string_view host);
  void append(const Hostlist& other);
  /// The hosts at these positions, in order. Positions past the end are an error of the caller.
  [[nodiscard]] Hostlist select(const IdSet& positions) const;

  /// Orders by prefix, then number, then suffix.
  void sort();
  /// Sorts and drops repeats.
  void unique();

  friend bool operator==(const Hostlist& a, const Hostlist& b);

  /// Calls f(std::string_view) for each host, in order. The view is valid during the call.
  template <class F>
  void for_each(F&& f) const {
    for (const std::string& host : hosts_) f(std::string_view(host));
  }

 private:
  std::vector<std::string> hosts_;
};

/// The positions of every host of a list, found in constant time. It keeps its own copy of what it needs, in
/// memory proportional to the runs of the list.
class HostIndex {
 public:
  HostIndex() = default;
  explicit HostIndex(const Hostlist& hosts);

  /// The first position of a host.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view host) const;

 private:
  std::unordered_map<std::string, std::size_t> positions_;
};

}  // namespace resourced
