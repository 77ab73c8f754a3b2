// Inputs that the tests of the scheduler share.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::fifo {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

inline rset::ResourceSet four_nodes(const char* hosts = "n[0-3]") {
  return rset::ResourceSet({{text::IdSet::range(0, 3), text::IdSet::range(0, 1), {}}},
                           text::Hostlist::parse(hosts));
}

/// A jobspec for a node for so long.
inline std::string job_of(int seconds) {
  return R"({"resources":[{"type":"node","count":1}],"attributes":{"system":{"duration":)" +
         std::to_string(seconds) + "}}}";
}

}  // namespace resourced::fifo
