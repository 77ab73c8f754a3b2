#include "loop_payloads.hpp"

#include <cstddef>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "fixture.hpp"
#include "wire/codec.hpp"

namespace resourced::e2e {
namespace {

std::string repeat(const std::string& text, std::size_t size) {
  std::string out;
  while (out.size() + text.size() <= size) out += text;
  return out;
}

/// `count` entries, separated by commas, each made from its number.
template <class Entry>
std::string listed(std::size_t count, const Entry& entry) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out.append(i == 0 ? "" : ",").append(entry(i));
  return out;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// The hello of an agent on n1 with an R of these children, hosts and other keys.
std::string hello(const std::string& children, const std::string& hosts, const std::string& more = "") {
  return R"({"hostname":"n1","R":{"version":1,"execution":{"R_lite":[)" + children +
         R"(],"starttime":0,"expiration":0,"nodelist":[)" + hosts + "]" + more + "}}}";
}

/// Hellos of about this many bytes that take long to read.
std::vector<std::pair<std::string, std::string>> hostile_hellos(std::size_t size) {
  const std::string core = R"({"rank":"0","children":{"core":"0"}})";
  const auto even = [](std::size_t i) { return std::to_string(2 * i); };
  return {
      {"many cores",
       hello(R"({"rank":"0","children":{"core":")" + listed(size / 6, even) + R"("}})", R"("n1")")},
      {"cores that come again and again",
       hello(listed(size / 42,
                    [](std::size_t i) {
                      return fmt::format(R"({{"rank":"0","children":{{"core":"{}"}}}})", 2 * i);
                    }),
             R"("n1")")},
      {"many ranks", hello(R"({"rank":")" + listed(size / 6, even) + R"(","children":{"core":"0"}})",
                           fmt::format(R"("n[0-{}]")", size / 6 - 1))},
      {"millions of ranks",
       hello(R"({"rank":"0-16777215","children":{"core":"0"}})",
             listed(16, [](std::size_t i) { return fmt::format(R"("n{}-[0-1048575]")", i); }))},
      {"hosts without a common stem",
       hello(core, quoted(listed(size / 6, [](std::size_t i) { return fmt::format("{}x", i % 7919); })))},
      {"overlapping runs of different stems",
       hello(core,
             quoted(listed(size / 20, [](std::size_t i) { return fmt::format("n[0-1048575]-{}", i); })))},
      {"a host an entry",
       hello(core, listed(size / 9, [](std::size_t i) { return fmt::format(R"("x{}")", i); }))},
      {"many properties",
       hello(core, R"("n1")",
             R"(,"properties":{)" +
                 listed(size / 12, [](std::size_t i) { return fmt::format(R"("p{}":"0")", i); }) + "}")},
      {"small arrays beside what is read",
       hello(core, R"("n1")", R"(,"x":[[])" + repeat(",[]", size - 200) + "]")},
      {"small objects beside what is read",
       hello(core, R"("n1")", R"(,"x":[{})" + repeat(R"(,{"":{}})", size - 200) + "]")},
      {"escapes", hello(core, R"("n1")", R"(,"x":")" + repeat(R"(\u0001)", size - 200) + "\"")},
  };
}

/// The hosts in orders that prevent look-ups of neighbours together.
std::vector<std::pair<std::string, std::string>> orders(const std::function<std::string(std::size_t)>& host) {
  constexpr std::size_t stride = 7919;
  return {
      {"in order", listed(targets, host)},
      {"backwards", listed(targets, [&](std::size_t i) { return host(targets - 1 - i); })},
      {"in no order", listed(targets, [&](std::size_t i) { return host(i * stride % targets); })},
      {"after a thousand that are not there",
       listed(1000, [](std::size_t i) { return fmt::format("{}gone{}", i, i); }) + "," +
           listed(targets, [&](std::size_t i) { return host(i * stride % targets); })},
  };
}

}  // namespace

std::string small_arrays(const std::string& rest, std::size_t size) {
  return "{" + rest + R"(,"x":[[])" + repeat(",[]", size - rest.size() - 16) + "]}";
}

std::vector<Ask> worst_payloads(std::size_t part) {
  const std::size_t large = mebibyte / part;
  const std::size_t medium = 64 * kibibyte / part;
  const std::size_t small = 16 * kibibyte / part;
  const std::string hosts = repeat("x[0-9]n[0-16383:2],", 48 * kibibyte / part);
  std::vector<Ask> asks;
  const auto add = [&](std::string what, std::string topic, std::string payload, std::uint8_t flags = 0) {
    asks.push_back({std::move(what), std::move(topic), std::move(payload), flags});
  };
  for (const std::string topic : {"resource.acquire-cancel", "resource.journal-cancel",
                                  "resource.agent-cancel", "resource.wait-cancel", "resource.disconnect"}) {
    add("a megabyte", topic, small_arrays(R"("matchtag":1)", large - 64), wire::flag_noresponse);
    add("64 KiB", topic, small_arrays(R"("matchtag":1)", medium - 64), wire::flag_noresponse);
    add("16 KiB", topic, small_arrays(R"("matchtag":1)", small - 64), wire::flag_noresponse);
  }
  for (const std::string topic :
       {"resource.status", "resource.sched-status", "resource.get", "resource.peers", "resource.stats-get",
        "resource.leader", "resource.cluster", "config.get", "resource.acquire-mute", "resource.stats-clear",
        "no.such"}) {
    add("a payload that is not read", topic, small_arrays(R"("a":1)", large - 64));
  }
  add("a megabyte", "attr.get", small_arrays(R"("name":"hostlist")", large - 64));
  add("16 KiB", "attr.get", small_arrays(R"("name":"hostlist")", small - 64));
  add("a long name", "attr.get", R"({"name":")" + std::string(small - 64, 'x') + "\"}");
  add("16 KiB", "resource.hand-over", small_arrays(R"("to":"x")", small - 64));
  add("64 KiB", "resource.ping", small_arrays(R"("a":1)", medium - 64));
  add("every other rank", "resource.wait",
      R"({"for":"idle","targets":")" +
          listed(targets / 2 / part, [](std::size_t i) { return std::to_string(2 * i); }) + "\"}");
  add("small arrays", "resource.wait", small_arrays(R"("for":"ready","targets":"0")", 60 * kibibyte / part));
  add("many ranges", "resource.wait", R"({"for":"ready","targets":")" + hosts + "y\"}");
  add("too long", "resource.ping", small_arrays(R"("a":1)", large));
  for (const std::string topic : {"resource.acquire", "resource.journal"}) {
    add("a megabyte", topic, small_arrays(R"("partition":"x")", large - 64), wire::flag_streaming);
    add("16 KiB", topic, small_arrays(R"("partition":"x")", small - 64), wire::flag_streaming);
  }
  add("48 KiB", "resource.journal", small_arrays(R"("a":1)", 48 * kibibyte / part), wire::flag_streaming);
  add("a long name", "resource.acquire", R"({"partition":")" + std::string(large - 64, 'x') + "\"}",
      wire::flag_streaming);
  add("hosts that there are not", "resource.journal", R"({"targets":"x[0-999999999]"})",
      wire::flag_streaming);
  add("many ranges", "resource.journal", R"({"targets":")" + hosts + "y\"}", wire::flag_streaming);
  add("every other rank", "resource.journal",
      R"({"targets":")" + listed(targets / 2 / part, [](std::size_t i) { return std::to_string(2 * i); }) +
          "\"}",
      wire::flag_streaming);
  add("more than may be named", "resource.journal",
      R"({"targets":"0)" + repeat(",9", large - 64 * kibibyte) + "\"}", wire::flag_streaming);
  for (const std::string topic :
       {"resource.drain", "resource.undrain", "resource.property", "resource.shrink", "resource.expiration",
        "resource.expiration-update", "resource.reload", "resource.monitor-waitup",
        "resource.monitor-force-down"}) {
    add("a megabyte", topic, small_arrays(R"("targets":"0")", large - 64));
  }
  for (const std::string topic : {"resource.agent-beat", "resource.agent-health", "resource.agent"}) {
    const std::uint8_t flags = topic == "resource.agent" ? wire::flag_streaming : 0;
    add("a megabyte", topic, small_arrays(R"("matchtag":1)", large - 64), flags);
    add("48 KiB", topic, small_arrays(R"("matchtag":1)", 48 * kibibyte / part), flags);
    add("16 KiB", topic, small_arrays(R"("matchtag":1)", small - 64), flags);
  }
  // The first size is the largest that a hello may have, the second one has the largest number of values of a
  // payload.
  for (const std::size_t size : {15 * kibibyte, 8 * kibibyte}) {
    for (auto& [what, payload] : hostile_hellos(size / part)) {
      add(what, "resource.agent", std::move(payload), wire::flag_streaming);
    }
  }
  add("a deep jobspec", "feasibility.check",
      R"({"jobspec":{"resources":)" +
          repeat(R"([{"type":"slot","count":1,"label":"a","with":)", 3000 / part) + "[]}}");
  add("a megabyte of small arrays", "feasibility.check", small_arrays(R"("jobspec":{})", large - 64));
  add("a million hosts", "feasibility.check",
      R"({"jobspec":{"resources":[{"type":"node","count":1}],"attributes":{"system":{"constraints":)"
      R"({"hostlist":["x[0-999999]"]}}}}})");
  add("a constraint of a megabyte", "feasibility.check",
      R"({"jobspec":{"resources":[{"type":"node","count":1}],"attributes":{"system":{"constraints":)"
      R"({"ranks":["0")" +
          repeat(R"(,"5")", 900 * kibibyte / part) + "]}}}}}");
  return asks;
}

std::vector<HostileAlloc> hostile_allocs() {
  const auto r_of = [](const std::string& entries, const std::string& hosts) {
    return R"({"version":1,"execution":{"R_lite":[)" + entries +
           R"(],"starttime":0,"expiration":0,"nodelist":[")" + hosts + R"("]}})";
  };
  const auto entry = [](const std::string& ranks, const std::string& children) {
    return R"({"rank":")" + ranks + R"(","children":{)" + children + "}}";
  };
  const auto alloc = [](const std::string& id, const std::string& r) {
    return R"({"id":")" + id + R"(","R":)" + r + "}";
  };
  const std::string every_resource = R"("core":"0-63","gpu":"0-7")";
  const auto every_second = [&](std::size_t count) {
    const std::string ranks = listed(count, [](std::size_t i) { return std::to_string(2 * i); });
    return alloc("j", r_of(entry(ranks, every_resource), "n[" + ranks + "]"));
  };
  const auto unlike = [&](std::size_t count) {
    return alloc("j", r_of(listed(count,
                                  [&](std::size_t i) {
                                    return entry(std::to_string(2 * i),
                                                 fmt::format(R"("core":"{}")", i % 64));
                                  }),
                           "n[" + listed(count, [](std::size_t i) { return std::to_string(2 * i); }) + "]"));
  };
  const auto several = [&](std::size_t count, const auto& r) {
    return R"({"allocations":[)" +
           listed(count, [&](std::size_t i) { return alloc(fmt::format("j{}", i), r(i)); }) + "]}";
  };
  const auto many_cores = [&](std::size_t count) {
    constexpr std::size_t side = 16;
    return alloc("j", r_of(listed(count,
                                  [&](std::size_t i) {
                                    return entry(std::to_string(i),
                                                 fmt::format(R"("core":"{}-{}")", i / side, 48 + i % side));
                                  }),
                           fmt::format("n[0-{}]", count - 1)));
  };
  const auto one_core_of_half = [&](std::size_t i) {
    return r_of(entry("0-7999", fmt::format(R"("core":"{}")", i)), "n[0-7999]");
  };
  const auto one_core_of_all = [&](std::size_t i) {
    return r_of(entry("0-16383", fmt::format(R"("core":"{}")", i)), "n[0-16383]");
  };
  const auto one_core = [&](std::size_t i) {
    return r_of(entry(std::to_string(i), R"("core":"0")"), fmt::format("n{}", i));
  };
  const auto one_target = [&](std::size_t i) {
    return r_of(entry(std::to_string(2 * i), every_resource), fmt::format("n{}", 2 * i));
  };
  return {
      {"all targets", alloc("j", r_of(entry("0-16383", every_resource), "n[0-16383]"))},
      {"every second target", every_second(targets / 2)},
      {"every second target, 64 KiB", every_second(6000)},
      {"every second target, 32 KiB", every_second(2900)},
      {"every second target, 24 KiB", every_second(2200)},
      {"every second target, 16 KiB", every_second(1450)},
      {"targets with different cores", unlike(300)},
      {"a core of all targets, twice", several(2, one_core_of_all), wire_errno::msgsize},
      {"a core of half the targets, twice", several(2, one_core_of_half)},
      {"many cores of each, which differ", many_cores(140)},
      {"too many cores of each, which differ", many_cores(240), wire_errno::msgsize},
      {"a core of all targets, many times", several(64, one_core_of_all), wire_errno::msgsize},
      {"all resources of many targets", several(50, one_target)},
      {"all resources of too many targets", several(1000, one_target), wire_errno::msgsize},
      {"100 jobs of a core", several(100, one_core)},
      {"2,000 jobs of a core", several(2000, one_core)},
      {"many small arrays", small_arrays(R"("id":"j")", 48 * kibibyte), wire_errno::proto},
      {"many more small arrays", small_arrays(R"("id":"j")", mebibyte - 64), wire_errno::proto},
      {"too much of them", small_arrays(R"("id":"j")", mebibyte + 64), wire_errno::msgsize},
      {"an empty list again and again",
       R"({"allocations":[])" + repeat(R"(,"allocations":[])", 48 * kibibyte) + R"(,"id":"j"})",
       wire_errno::proto},
      {"an R again and again that cannot be read", R"({"id":"j")" + repeat(R"(,"R":{})", 48 * kibibyte) + "}",
       wire_errno::inval},
  };
}

std::vector<Inventory> inventories() {
  const auto plain = [](std::size_t i) { return fmt::format("n{}", i); };
  // The name of each host begins differently.
  const auto different = [](std::size_t i) {
    return fmt::format("{}{}{}0", static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26 % 26),
                       static_cast<char>('a' + i / 676));
  };
  const auto rack = [](std::size_t i) { return fmt::format("r{}n{}", i / 128, i % 128); };
  const auto across = [](std::size_t i) { return fmt::format("r{}n{}", i % 128, i / 128); };
  const auto in_turn = [](std::size_t i) { return fmt::format("{}{}", i % 2 == 0 ? "a" : "b", i / 2); };
  std::vector<Inventory> all{
      {"numbers", "n[0-16383]", orders(plain)},
      {"two prefixes", "a[0-8191],b[0-8191]", orders(in_turn)},
      {"racks", listed(128, [](std::size_t i) { return fmt::format("r{}n[0-127]", i); }), orders(rack)},
      {"different stems", listed(targets, different), orders(different)},
  };
  all[0].texts.emplace_back("as a range", "n[0-16383]");
  all[0].texts.emplace_back("as an idset", "0-16383");
  all[0].texts.emplace_back("as ranks", listed(targets, [](std::size_t i) { return std::to_string(i); }));
  all[0].texts.emplace_back("with another number in brackets",
                            listed(10, [](std::size_t i) { return fmt::format("n[1-1637]{}", i); }));
  all[0].texts.emplace_back("with another number in many brackets",
                            listed(1000, [](std::size_t i) { return fmt::format("n[1-9]{:03}", i); }));
  all[2].texts.emplace_back("across", listed(targets, across));
  all[2].texts.emplace_back("with another number in brackets",
                            listed(128, [](std::size_t i) { return fmt::format("r[0-127]n{}", i); }));
  return all;
}

std::vector<std::pair<std::string, std::string>> hostile_hostlists() {
  constexpr std::size_t size = 57 * kibibyte;
  return {
      {"a huge range", "n[0-1048575]"},
      {"a range beyond what an expression may have", "n[0-99999999999]"},
      {"numbers of many digits", "n[1-" + std::string(size, '9') + "]"},
      {"huge ranges, many times", repeat("n[0-1048575],", size) + "n1"},
      {"nested brackets", "n[0-[0-[0-9]]]"},
      {"brackets in brackets all the way", std::string(size, '[')},
      {"brackets that are not opened", std::string(size, ']')},
      {"two brackets", "n[0-9]m[0-9]"},
      {"a bracket that is not closed", "n[0-9"},
      {"overlapping runs of different stems",
       listed(size / 20, [](std::size_t i) { return fmt::format("n[0-1048575]-{}", i); })},
      {"overlapping runs of one stem",
       listed(size / 20, [](std::size_t i) { return fmt::format("n[{}-1048575]", i); })},
      {"zero padding", "n[00-99]"},
      {"zero padding without end", "n[" + std::string(size, '0') + "-1]"},
      {"widths that differ",
       listed(size / 600, [](std::size_t i) { return fmt::format("n[{}-9]", std::string(i + 2, '0')); })},
      {"commas", std::string(size, ',')},
      {"a comma at the end", "n0,"},
      {"commas in brackets", "n[" + std::string(size, ',') + "]"},
      {"a range that runs backwards", "n[9-0]"},
      {"an endless name", std::string(size, 'n')},
      {"lines", repeat("n0\\n", size)},
      {"bytes that are no characters", repeat("n\\u0001,", size)},
      {"letters of others", repeat("n\u00e9,", size)},
      {"blanks", std::string(size, ' ')},
      {"a dash", "-"},
      {"dashes", "n[" + std::string(size, '-') + "]"},
  };
}

}  // namespace resourced::e2e
