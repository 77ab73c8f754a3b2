// Builds a resource set by one call.
#pragma once

#include "core/rset/resource_set.hpp"

namespace resourced::test {

/// A set of these hosts, in the order of their ranks, each with the same cores and gpus.
inline rset::ResourceSet nodes(const char* ranks, const char* cores, const char* gpus, const char* hosts) {
  return rset::ResourceSet({{text::IdSet::parse(ranks), text::IdSet::parse(cores), text::IdSet::parse(gpus)}},
                           text::Hostlist::parse(hosts));
}

}  // namespace resourced::test
