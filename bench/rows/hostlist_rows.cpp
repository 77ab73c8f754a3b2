// Lists of hosts (RFC 29): text, order and look-up.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "bench/load/limits.hpp"
#include "bench/load/workload.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "core/text/host_index.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::bench {

using text::Hostlist;

namespace {

/// The size that has bars.
constexpr std::uint64_t held_size = 100'000;
constexpr std::uint64_t sizes[] = {1'024, 16'384, held_size, 1'048'576};

/// Makes a row: `prepare(size)` returns a sampler; bar and peer are for held_size.
template <class MakeSampler>
Row row(std::string name, double bar, double peer, double growth, MakeSampler prepare) {
  Row made{.name = std::move(name), .of = "hosts", .growth_bar = growth};
  for (const std::uint64_t size : sizes) {
    const bool held = size == held_size;
    made.points.push_back({.size = size,
                           .prepare = [prepare, size] { return prepare(size); },
                           .bar = held ? bar : 0,
                           .peer = held ? peer : 0});
  }
  return made;
}

Row text_row(std::string name, double bar, double peer, double growth,
             std::string (*text_of)(std::uint64_t)) {
  Row made = row(std::move(name), bar, peer, growth, [text_of](std::uint64_t size) {
    return repeated([text = text_of(size)] { return Hostlist::parse(text); });
  });
  made.limit_name = "copy of the text";
  for (Point& point : made.points) {
    point.limit = Limits::copy([text_of, size = point.size] { return text_of(size).size(); });
  }
  return made;
}

std::string range_text(std::uint64_t size) { return fmt::format("host[0-{}]", size - 1); }
std::string ordered_text(std::uint64_t size) { return single_names(size, false); }
std::string shuffled_text(std::uint64_t size) { return single_names(size, true); }

Hostlist shuffled(std::uint64_t size) { return Hostlist::parse(shuffled_text(size)); }

Sampler find_last(std::uint64_t size) {
  const Hostlist hosts = shuffled(size);
  return repeated([index = std::make_shared<text::HostIndex>(hosts), last = hosts.at(hosts.size() - 1)] {
    return index->find(last);
  });
}

}  // namespace

std::vector<Row> hostlist_rows() {
  return {
      text_row("hostlist: decode a range", 1 * us, 5.6 * us, growth::flat, range_text),
      row("hostlist: encode a range", 0.5 * us, 0.37 * us, growth::flat,
          [](std::uint64_t size) {
            return repeated([hosts = Hostlist::parse(range_text(size))] { return hosts.encode(); });
          }),
      text_row("hostlist: decode single names in order", 5 * ms, 23 * ms, growth::linear, ordered_text),
      text_row("hostlist: decode single names shuffled", 8 * ms, 38 * ms, growth::linear, shuffled_text),
      row("hostlist: sort shuffled names", 15 * ms, 51 * ms, growth::linear,
          [](std::uint64_t size) {
            return repeated([hosts = shuffled(size)] {
              Hostlist copy = hosts;
              copy.sort();
              return copy;
            });
          }),
      row("hostlist: unique of shuffled names", 15 * ms, 890 * ms, growth::linear,
          [](std::uint64_t size) {
            return repeated([hosts = shuffled(size)] {
              Hostlist copy = hosts;
              copy.unique();
              return copy;
            });
          }),
      row("hostlist: find the last of shuffled names, indexed", 1 * us, 1.1 * ms, growth::flat, find_last),
      row("hostlist: build the index of shuffled names", 0, 0, growth::linear,
          [](std::uint64_t size) {
            return repeated([hosts = shuffled(size)] { return text::HostIndex(hosts); });
          }),
  };
}

}  // namespace resourced::bench
