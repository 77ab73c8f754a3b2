#include "flux/module/reduction.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/operations.hpp"

namespace resourced::flux::module {

using rset::ResourceSet;

namespace {

// Maximum number of values in a report, the R of all brokers below a rank.
constexpr std::size_t most_values_of_report = std::size_t{1} << 24U;

}  // namespace

bool Reduction::take(const proto::Message& report, Channel& channel) {
  try {
    const nlohmann::json object = proto::parse_object(report, most_values_of_report);
    const auto count = object.at("count").get<std::uint32_t>();
    const ResourceSet found = ResourceSet::from_json(object.at("resource"));
    // Ignore a repeated report.
    if (!(found.ranks() & resources_.ranks()).empty()) return false;
    resources_ = append(resources_, found);
    count_ += count;
    return true;
  } catch (const std::exception& error) {
    channel.log_error(fmt::format("error decoding topo-reduce request: {}", error.what()));
    return false;
  }
}

void Reduction::report(Channel& channel) const {
  channel.tell("resource.topo-reduce", {{"count", count_}, {"resource", resources_.to_json()}},
               channel.upstream());
}

}  // namespace resourced::flux::module
