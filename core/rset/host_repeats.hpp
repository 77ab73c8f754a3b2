// Whether some host is in a list more than once.
#pragma once

#include "core/error.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::rset {

/// Says yes, too, where the list overlaps itself so much that finding out would take long.
[[nodiscard]] inline bool has_repeats(const text::Hostlist& hosts) {
  text::Hostlist distinct = hosts;
  try {
    distinct.unique();
  } catch (const Error&) {
    return true;
  }
  return distinct.size() != hosts.size();
}

}  // namespace resourced::rset
