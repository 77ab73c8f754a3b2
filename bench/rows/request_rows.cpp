// Requests of users: shapes (RFC 46) and jobspecs (RFC 25).
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "core/document/document.hpp"
#include "core/jobspec/jobspec.hpp"
#include "core/jobspec/shape.hpp"

namespace resourced::bench {
namespace {

/// The longest of RFC 46's examples.
constexpr const char* shape =
    "node/[slot=10{read-db}/[core;memory=4{unit:GB}];slot{db}/[core=6;memory=24{unit:GB}]]";

/// A jobspec as job submission makes it: 2.9 kB, mostly environment.
std::string jobspec() {
  std::string environment;
  for (int i = 0; i < 48; ++i) {
    environment +=
        fmt::format(R"({}"VARIABLE_{}":"/opt/site/software/release-{}/lib64")", i == 0 ? "" : ",", i, i);
  }
  return fmt::format(
      R"({{"version":1,"resources":[{{"type":"node","count":4,"with":[{{"type":"slot","count":8,"label":"default","with":[{{"type":"core","count":6}},{{"type":"gpu","count":1}}]}}]}}],"tasks":[{{"command":["app","--input","data"],"slot":"default","count":{{"per_slot":1}}}}],"attributes":{{"system":{{"duration":3600.0,"cwd":"/home/user","environment":{{{}}}}}}}}})",
      environment);
}

}  // namespace

std::vector<Row> request_rows() {
  const std::string longest = shape;
  const std::string spec = jobspec();
  return {
      {.name = "shape: parse RFC 46's longest example",
       .unit = Unit::rate,
       .of = "bytes",
       .points = {{.size = longest.size(),
                   .prepare =
                       [longest] { return repeated([longest] { return jobspec::parse_shape(longest); }); },
                   .bar = 1.0 / 500'000,
                   .peer = 1.0 / 10'096}}},
      {.name = "jobspec V1: validate from JSON",
       .unit = Unit::rate,
       .of = "bytes",
       .points = {{.size = spec.size(),
                   .prepare =
                       [spec] {
                         return repeated([spec] {
                           jobspec::check_jobspec_v1(document::read_document(spec));
                           return 0;
                         });
                       },
                   .bar = 1.0 / 50'000,
                   .peer = 1.0 / 40'698}}},
  };
}

}  // namespace resourced::bench
