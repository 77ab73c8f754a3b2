// Compares the resources that were found with those that are expected, as `[resource.verify]` asks for.
#pragma once

#include <string>
#include <string_view>

#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// The differences that count as a mismatch: all, missing resources only, extra resources only, none.
enum class VerifyMode { strict, allow_extra, allow_missing, ignore };

/// Reads `strict`, `allow-extra`, `allow-missing` or `ignore`. Throws Error EINVAL.
[[nodiscard]] VerifyMode parse_verify_mode(std::string_view text);

/// The mode of each type. The defaults are those of a configuration without `[resource.verify]`.
struct VerifyOptions {
  VerifyMode core = VerifyMode::allow_extra;
  VerifyMode gpu = VerifyMode::ignore;
  VerifyMode hostname = VerifyMode::strict;
  friend bool operator==(const VerifyOptions&, const VerifyOptions&) = default;

  /// Returns options with the same mode for every type.
  [[nodiscard]] static VerifyOptions all(VerifyMode mode) { return {mode, mode, mode}; }
};

/// Returns one line that names the mismatches, rank by rank where more than one rank is concerned, or "" for
/// none: `missing resources: gpu[2-3]`. A rank is compared with the same rank; another host of the rank is a
/// mismatch unless host names are ignored.
[[nodiscard]] std::string verify(const ResourceSet& expected, const ResourceSet& found,
                                 const VerifyOptions& options = {});

}  // namespace resourced::rset
