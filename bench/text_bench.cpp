// Idsets and hostlists of the sizes that a large cluster has. CRoaring, where it is installed, shows what a
// compressed bitmap would do for the same sets.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

#ifdef RESOURCED_BENCH_ROARING
#include <roaring/roaring.h>
#endif

namespace {

using resourced::HostIndex;
using resourced::Hostlist;
using resourced::IdSet;

IdSet every_other(IdSet::Id size) {
  IdSet ids;
  for (IdSet::Id id = 0; id < size; id += 2) ids.insert(id);
  return ids;
}

IdSet random_half(IdSet::Id size) {
  std::mt19937 random(42);
  IdSet ids;
  for (IdSet::Id id = 0; id < size; ++id) {
    if (random() % 2 == 0) ids.insert(id);
  }
  return ids;
}

void decode_idset(benchmark::State& state, const IdSet& ids) {
  const std::string text = ids.encode();
  for (auto _ : state) benchmark::DoNotOptimize(IdSet::parse(text));
}

void encode_idset(benchmark::State& state, const IdSet& ids) {
  for (auto _ : state) benchmark::DoNotOptimize(ids.encode());
}

BENCHMARK_CAPTURE(decode_idset, range_1000000, IdSet::range(0, 999'999));
BENCHMARK_CAPTURE(encode_idset, range_1000000, IdSet::range(0, 999'999));
BENCHMARK_CAPTURE(decode_idset, all_ids, IdSet::range(0, IdSet::max_id));
BENCHMARK_CAPTURE(decode_idset, every_other_of_200000, every_other(200'000))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(encode_idset, every_other_of_200000, every_other(200'000))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(decode_idset, random_half_of_16384, random_half(16'384))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(encode_idset, random_half_of_16384, random_half(16'384))->Unit(benchmark::kMicrosecond);

void unite(benchmark::State& state, const IdSet& a, const IdSet& b) {
  for (auto _ : state) benchmark::DoNotOptimize(a | b);
}

void intersect(benchmark::State& state, const IdSet& a, const IdSet& b) {
  for (auto _ : state) benchmark::DoNotOptimize(a & b);
}

void subtract(benchmark::State& state, const IdSet& a, const IdSet& b) {
  for (auto _ : state) benchmark::DoNotOptimize(a - b);
}

void compare(benchmark::State& state, const IdSet& a, const IdSet& b) {
  for (auto _ : state) benchmark::DoNotOptimize(a.includes(b) && a.intersects(b));
}

#define RESOURCED_BENCH_SETS(function)                                                                     \
  BENCHMARK_CAPTURE(function, range_1000000_every_other, IdSet::range(0, 999'999), every_other(1'000'000)) \
      ->Unit(benchmark::kMicrosecond);                                                                     \
  BENCHMARK_CAPTURE(function, every_other_1000000_random_half, every_other(1'000'000),                     \
                    random_half(1'000'000))                                                                \
      ->Unit(benchmark::kMicrosecond);                                                                     \
  BENCHMARK_CAPTURE(function, random_half_1000000_one_id, random_half(1'000'000), IdSet{500'000})          \
      ->Unit(benchmark::kMicrosecond)

RESOURCED_BENCH_SETS(unite);
RESOURCED_BENCH_SETS(intersect);
RESOURCED_BENCH_SETS(subtract);
RESOURCED_BENCH_SETS(compare);

void insert_and_erase(benchmark::State& state, IdSet ids, std::uint64_t span) {
  std::mt19937_64 random(7);
  std::vector<IdSet::Id> some(4096);
  for (IdSet::Id& id : some) id = static_cast<IdSet::Id>(random() % span);
  std::size_t i = 0;
  for (auto _ : state) {
    const IdSet::Id id = some[i++ % some.size()];
    ids.erase(id);
    ids.insert(id);
  }
}

IdSet scattered(std::uint64_t span, int count) {
  std::mt19937_64 random(8);
  IdSet ids;
  for (int i = 0; i < count; ++i) ids.insert(static_cast<IdSet::Id>(random() % span));
  return ids;
}

BENCHMARK_CAPTURE(insert_and_erase, range_1000000, IdSet::range(0, 999'999), 1'000'000);
BENCHMARK_CAPTURE(insert_and_erase, random_half_1000000, random_half(1'000'000), 1'000'000);
BENCHMARK_CAPTURE(insert_and_erase, scattered_1000000_in_2000000000, scattered(2'000'000'000, 1'000'000),
                  2'000'000'000);

void insert_ascending(benchmark::State& state, IdSet::Id step) {
  for (auto _ : state) {
    IdSet ids;
    for (IdSet::Id i = 0; i < 1000; ++i) ids.insert(i * step);
    benchmark::DoNotOptimize(ids);
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}

BENCHMARK_CAPTURE(insert_ascending, consecutive, 1);
BENCHMARK_CAPTURE(insert_ascending, every_other, 2);

void small_set(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(IdSet::parse("1,7-9,16").encode());
}
BENCHMARK(small_set);

#ifdef RESOURCED_BENCH_ROARING
roaring_bitmap_t* to_roaring(const IdSet& ids) {
  roaring_bitmap_t* bitmap = roaring_bitmap_create();
  ids.for_each_range(
      [&](IdSet::Range range) { roaring_bitmap_add_range_closed(bitmap, range.first, range.last); });
  roaring_bitmap_run_optimize(bitmap);
  return bitmap;
}

void roaring_pair(benchmark::State& state, const IdSet& a, const IdSet& b,
                  roaring_bitmap_t* (*operation)(const roaring_bitmap_t*, const roaring_bitmap_t*)) {
  roaring_bitmap_t* first = to_roaring(a);
  roaring_bitmap_t* second = to_roaring(b);
  for (auto _ : state) roaring_bitmap_free(operation(first, second));
  roaring_bitmap_free(first);
  roaring_bitmap_free(second);
}

BENCHMARK_CAPTURE(roaring_pair, unite_range_1000000_every_other, IdSet::range(0, 999'999),
                  every_other(1'000'000), roaring_bitmap_or)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(roaring_pair, intersect_range_1000000_every_other, IdSet::range(0, 999'999),
                  every_other(1'000'000), roaring_bitmap_and)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(roaring_pair, subtract_range_1000000_every_other, IdSet::range(0, 999'999),
                  every_other(1'000'000), roaring_bitmap_andnot)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(roaring_pair, unite_every_other_1000000_random_half, every_other(1'000'000),
                  random_half(1'000'000), roaring_bitmap_or)
    ->Unit(benchmark::kMicrosecond);

void roaring_insert_and_erase(benchmark::State& state, const IdSet& ids, std::uint64_t span) {
  roaring_bitmap_t* bitmap = to_roaring(ids);
  std::mt19937_64 random(7);
  std::vector<IdSet::Id> some(4096);
  for (IdSet::Id& id : some) id = static_cast<IdSet::Id>(random() % span);
  std::size_t i = 0;
  for (auto _ : state) {
    const IdSet::Id id = some[i++ % some.size()];
    roaring_bitmap_remove(bitmap, id);
    roaring_bitmap_add(bitmap, id);
  }
  roaring_bitmap_free(bitmap);
}
BENCHMARK_CAPTURE(roaring_insert_and_erase, random_half_1000000, random_half(1'000'000), 1'000'000);
BENCHMARK_CAPTURE(roaring_insert_and_erase, scattered_1000000_in_2000000000,
                  scattered(2'000'000'000, 1'000'000), 2'000'000'000);

void roaring_all_ids(benchmark::State& state) {
  for (auto _ : state) roaring_bitmap_free(roaring_bitmap_from_range(0, std::uint64_t{IdSet::max_id} + 1, 1));
}
BENCHMARK(roaring_all_ids)->Unit(benchmark::kMicrosecond);
#endif

std::vector<std::string> names(bool shuffled) {
  std::vector<std::string> list;
  for (int i = 0; i < 100'000; ++i) list.push_back("host" + std::to_string(i));
  if (shuffled) std::shuffle(list.begin(), list.end(), std::mt19937(3));
  return list;
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& name : list) text += (text.empty() ? "" : ",") + name;
  return text;
}

void decode_hostlist(benchmark::State& state, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(Hostlist::parse(text));
}

void encode_hostlist(benchmark::State& state, const std::string& text) {
  const Hostlist hosts = Hostlist::parse(text);
  for (auto _ : state) benchmark::DoNotOptimize(hosts.encode());
}

BENCHMARK_CAPTURE(decode_hostlist, range_100000, "host[0-99999]");
BENCHMARK_CAPTURE(encode_hostlist, range_100000, "host[0-99999]");
BENCHMARK_CAPTURE(decode_hostlist, names_100000, joined(names(false)))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(decode_hostlist, shuffled_100000, joined(names(true)))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(encode_hostlist, shuffled_100000, joined(names(true)))->Unit(benchmark::kMicrosecond);

void append_names(benchmark::State& state, const std::vector<std::string>& list) {
  for (auto _ : state) {
    Hostlist hosts;
    for (const std::string& name : list) hosts.append(name);
    benchmark::DoNotOptimize(hosts);
  }
}
BENCHMARK_CAPTURE(append_names, shuffled_100000, names(true))->Unit(benchmark::kMicrosecond);

void sort_hostlist(benchmark::State& state, const std::string& text) {
  const Hostlist hosts = Hostlist::parse(text);
  for (auto _ : state) {
    Hostlist copy = hosts;
    copy.sort();
    benchmark::DoNotOptimize(copy);
  }
}

void unique_hostlist(benchmark::State& state, const std::string& text) {
  const Hostlist hosts = Hostlist::parse(text);
  for (auto _ : state) {
    Hostlist copy = hosts;
    copy.unique();
    benchmark::DoNotOptimize(copy);
  }
}

BENCHMARK_CAPTURE(sort_hostlist, shuffled_100000, joined(names(true)))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(unique_hostlist, shuffled_100000, joined(names(true)))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(unique_hostlist, twice_100000, joined(names(true)) + ",host[0-99999]")
    ->Unit(benchmark::kMicrosecond);

void index_hostlist(benchmark::State& state, const std::string& text) {
  const Hostlist hosts = Hostlist::parse(text);
  for (auto _ : state) benchmark::DoNotOptimize(HostIndex(hosts));
}

void find_last(benchmark::State& state, const std::string& text) {
  const Hostlist hosts = Hostlist::parse(text);
  const HostIndex index(hosts);
  const std::string last = hosts.at(hosts.size() - 1);
  for (auto _ : state) benchmark::DoNotOptimize(index.find(last));
}

void find_any(benchmark::State& state, const std::string& text) {
  const HostIndex index(Hostlist::parse(text));
  const std::vector<std::string> wanted = names(true);
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(index.find(wanted[i++ % wanted.size()]));
}

BENCHMARK_CAPTURE(index_hostlist, shuffled_100000, joined(names(true)))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(find_last, shuffled_100000, joined(names(true)));
BENCHMARK_CAPTURE(find_any, shuffled_100000, joined(names(true)));

void select_hosts(benchmark::State& state, const std::string& text, const IdSet& positions) {
  const Hostlist hosts = Hostlist::parse(text);
  for (auto _ : state) benchmark::DoNotOptimize(hosts.select(positions));
}
BENCHMARK_CAPTURE(select_hosts, range_of_range, "host[0-99999]", IdSet::range(1000, 80'000));
BENCHMARK_CAPTURE(select_hosts, ten_of_shuffled, joined(names(true)), IdSet::range(50'000, 50'009));

void for_each_host(benchmark::State& state) {
  const Hostlist hosts = Hostlist::parse("host[0-99999]");
  for (auto _ : state) {
    std::size_t length = 0;
    hosts.for_each([&](std::string_view host) { length += host.size(); });
    benchmark::DoNotOptimize(length);
  }
}
BENCHMARK(for_each_host)->Unit(benchmark::kMicrosecond);

}  // namespace
