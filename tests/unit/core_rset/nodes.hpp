// Resource sets in one line.
#pragma once

#include "core/rset/resource_set.hpp"

namespace resourced::test {

/// These hosts, in the order of their ranks, each with the same cores and gpus.
inline ResourceSet nodes(const char* ranks, const char* cores, const char* gpus, const char* hosts) {
  return ResourceSet({{IdSet::parse(ranks), IdSet::parse(cores), IdSet::parse(gpus)}},
                     Hostlist::parse(hosts));
}

}  // namespace resourced::test
