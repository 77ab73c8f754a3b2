#include "config/sample.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::config {

bool has_sample_inventory(const Config& config) {
  const auto entry = [](const char* hosts, const char* cores, const char* gpus,
                        std::vector<std::string> properties) {
    return ResourceEntry{text::Hostlist::parse(hosts), text::IdSet::parse(cores), text::IdSet::parse(gpus),
                         std::move(properties)};
  };
  return config.resource.entries == std::vector{entry("node[0-7]", "0-3", "", {}),
                                                entry("node[0-5]", "", "", {"batch"}),
                                                entry("node[6-7]", "", "0-1", {"gpu", "debug"})};
}

}  // namespace resourced::config
