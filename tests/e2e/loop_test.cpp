// What the loop's time is worth to others: each topic with the worst payload that could be thought of, from
// each role that is not the operators', on a cluster of 16,384 targets. The daemon itself measures how long
// the loop was held (resource.stats-get); the best of several tries counts, as other programs hold it too.
// The bounds are those of a machine that parses JSON as fast as `usual` says, and longer on a slower one.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fixture.hpp"
#include "harness/other_user.hpp"
#include "wire/local_client.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::uint32_t someone = 61001;

std::string repeat(const std::string& text, std::size_t size) {
  std::string out;
  while (out.size() + text.size() <= size) out += text;
  return out;
}

/// An object with this key and a value of about so many bytes that costs a parser most: many small arrays.
std::string small_arrays(const std::string& rest, std::size_t size) {
  return "{" + rest + R"(,"x":[[])" + repeat(",[]", size - rest.size() - 16) + "]}";
}

struct Ask {
  std::string what;
  std::string topic;
  std::string payload;
  std::uint8_t flags = 0;
};

constexpr std::size_t targets = 16384;

/// So many milliseconds of a usual machine on this one, and no fewer: as long as it takes the JSON library to
/// parse 64 KiB that cost it most, at best.
double on_this_machine(double milliseconds) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  constexpr Milliseconds usual{0.8};
  static const double slowness = [&] {
    const std::string text = small_arrays(R"("a":1)", 64 * kib);
    Milliseconds least = std::chrono::hours(1);
    for (int i = 0; i < 50; ++i) {
      const auto begun = Clock::now();
      REQUIRE(json::parse(text).size() == 2);
      least = std::min<Milliseconds>(least, Clock::now() - begun);
    }
    return std::max(1.0, least / usual);
  }();
  return milliseconds * slowness;
}

std::string role_config(const std::string& role, const std::string& hosts) {
  return fmt::format(
      "[monitor]\nmode = \"agents\"\n[[access.rule]]\nusers = [{}]\nroles = [\"{}\"]\n"
      "[[resource.config]]\nhosts = \"{}\"\ncores = \"0-63\"\ngpus = \"0-7\"\n",
      someone, role, hosts);
}

struct Loop {
  explicit Loop(const std::string& role, const std::string& hosts = "n[0-16383]")
      : config(role_config(role, hosts)) {
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  }

  [[nodiscard]] std::unique_ptr<LocalClient> client() const {
    const OtherUser user(someone);
    return std::make_unique<LocalClient>(dir / "local");
  }
  json longest_hold() { return owner.call("resource.stats-get").json()["longest-hold"]; }

  /// The longest hold in milliseconds while `work` is done, at best.
  template <class Work>
  json best(double bound, const Work& work, int tries = 60) {
    json least;
    for (int i = 0; i < tries; ++i) {
      REQUIRE(owner.call("resource.stats-clear").errnum == 0);
      work();
      const json hold = longest_hold();
      if (least.is_null() || hold["ms"] < least["ms"]) least = hold;
      if (least["ms"] < bound) break;
    }
    return least;
  }

  /// A request whose answer, whatever it is, has come when this returns, and all that was to be done for it.
  /// The errno of the answer.
  std::uint32_t ask(const Ask& ask) {
    const auto asker = client();
    return response_to(*asker, ask).errnum;
  }
  /// The same by the owner; not for streams.
  std::uint32_t ask_as_owner(const Ask& ask) { return response_to(owner, ask).errnum; }

  RawResponse response_to(LocalClient& asker, const Ask& ask) {
    std::optional<std::string> payload;
    if (!ask.payload.empty()) payload = ask.payload + '\0';
    asker.send(local_frame(request_parts(ask.topic, 1, payload, ask.flags)));
    RawResponse response;
    if ((ask.flags & wire::flag_noresponse) == 0) response = asker.response();
    (void)owner.call("resource.ping");
    return response;
  }

  std::string config;
  TempDir dir;
  Daemon daemon{dir,
                {.config = config,
                 .listen = {"ipc://" + (dir / "bus").string(), "local://" + (dir / "local").string()}}};
  LocalClient owner{dir / "local"};
};

/// `count` entries with commas between, each made from its number.
template <class Entry>
std::string listed(std::size_t count, const Entry& entry) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out.append(i == 0 ? "" : ",").append(entry(i));
  return out;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// The hello of an agent on n1 whose R has these children, nodelist and other keys.
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

/// What takes long of each topic, whether the role may ask it or not. With a larger `part` payloads are that
/// many times smaller.
std::vector<Ask> worst_payloads(std::size_t part = 1) {
  const std::size_t large = mib / part;
  const std::size_t medium = 64 * kib / part;
  const std::size_t small = 16 * kib / part;
  const std::string hosts = repeat("x[0-9]n[0-16383:2],", 48 * kib / part);
  std::vector<Ask> asks;
  const auto add = [&](std::string what, std::string topic, std::string payload, std::uint8_t flags = 0) {
    asks.push_back({std::move(what), std::move(topic), std::move(payload), flags});
  };
  for (const std::string topic : {"resource.acquire-cancel", "resource.journal-cancel",
                                  "resource.agent-cancel", "resource.disconnect"}) {
    add("a megabyte", topic, small_arrays(R"("matchtag":1)", large - 64), wire::flag_noresponse);
    add("64 KiB", topic, small_arrays(R"("matchtag":1)", medium - 64), wire::flag_noresponse);
    add("16 KiB", topic, small_arrays(R"("matchtag":1)", small - 64), wire::flag_noresponse);
  }
  for (const std::string topic :
       {"resource.status", "resource.sched-status", "resource.get", "resource.stats-get", "config.get",
        "resource.acquire-mute", "resource.stats-clear", "no.such"}) {
    add("a payload that is not read", topic, small_arrays(R"("a":1)", large - 64));
  }
  add("a megabyte", "attr.get", small_arrays(R"("name":"hostlist")", large - 64));
  add("16 KiB", "attr.get", small_arrays(R"("name":"hostlist")", small - 64));
  add("a long name", "attr.get", R"({"name":")" + std::string(small - 64, 'x') + "\"}");
  add("64 KiB", "resource.ping", small_arrays(R"("a":1)", medium - 64));
  add("too long", "resource.ping", small_arrays(R"("a":1)", large));
  for (const std::string topic : {"resource.acquire", "resource.journal"}) {
    add("a megabyte", topic, small_arrays(R"("partition":"x")", large - 64), wire::flag_streaming);
    add("16 KiB", topic, small_arrays(R"("partition":"x")", small - 64), wire::flag_streaming);
  }
  add("48 KiB", "resource.journal", small_arrays(R"("a":1)", 48 * kib / part), wire::flag_streaming);
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
      R"({"targets":"0)" + repeat(",9", large - 64 * kib) + "\"}", wire::flag_streaming);
  for (const std::string topic :
       {"resource.drain", "resource.undrain", "resource.property", "resource.shrink", "resource.expiration",
        "resource.expiration-update", "resource.reload", "resource.monitor-waitup",
        "resource.monitor-force-down"}) {
    add("a megabyte", topic, small_arrays(R"("targets":"0")", large - 64));
  }
  for (const std::string topic : {"resource.agent-beat", "resource.agent"}) {
    const std::uint8_t flags = topic == "resource.agent" ? wire::flag_streaming : 0;
    add("a megabyte", topic, small_arrays(R"("matchtag":1)", large - 64), flags);
    add("48 KiB", topic, small_arrays(R"("matchtag":1)", 48 * kib / part), flags);
    add("16 KiB", topic, small_arrays(R"("matchtag":1)", small - 64), flags);
  }
  // The first as large as a hello may be, the second with no more values than a payload may have.
  for (const std::size_t size : {15 * kib, 8 * kib}) {
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
          repeat(R"(,"5")", 900 * kib / part) + "]}}}}}");
  return asks;
}

/// Lists of 16,384 hosts, and texts that name all or most of them and are hard to look up.
struct Inventory {
  std::string what;
  std::string hosts;
  std::vector<std::pair<std::string, std::string>> texts;
};

/// The hosts in the orders that keep neighbours from being looked up together.
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

std::vector<Inventory> inventories() {
  const auto plain = [](std::size_t i) { return fmt::format("n{}", i); };
  // No two of these share a prefix.
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

/// Texts that are no hostlist, or whose ranges stand for far too many hosts.
std::vector<std::pair<std::string, std::string>> hostile_hostlists() {
  constexpr std::size_t size = 57 * kib;
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

std::string targets_payload(const std::string& text, const std::string& more = "") {
  return R"({"targets":")" + text + "\"" + more + "}";
}

/// Whether the time grows with the square of the size, from the milliseconds for a quarter, a half and the
/// whole. Both doublings must show it: a single step may come from a larger buffer.
bool is_quadratic(double quarter, double half, double whole) {
  constexpr double most = 3;
  constexpr double noise = 0.02;
  return half > most * quarter + noise && whole > most * half + noise;
}

TEST_SUITE_BEGIN("loop");

TEST_CASE("growth is told from a step") {
  CHECK(is_quadratic(0.06, 0.24, 0.96));
  CHECK(is_quadratic(0.03, 0.12, 0.48));
  CHECK_FALSE(is_quadratic(0.2, 0.4, 0.8));
  CHECK_FALSE(is_quadratic(0.01, 0.02, 0.5));
  CHECK_FALSE(is_quadratic(0.01, 0.25, 0.5));
}

TEST_CASE("nothing that a user, a scheduler or an agent sends holds the loop for long") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  // Below this there is nothing to compare.
  const double noticeable = bound / 2;
  const std::vector<Ask> wholes = worst_payloads();
  const std::vector<Ask> halves = worst_payloads(2);
  const std::vector<Ask> quarters = worst_payloads(4);
  for (const std::string role : {"user", "scheduler", "agent"}) {
    Loop loop(role);
    // The first of each kind is a first answer after the start.
    for (const char* topic : {"resource.status", "resource.sched-status", "resource.get", "config.get"})
      (void)loop.owner.call(topic);
    (void)loop.owner.call("attr.get", {{"name", "hostlist"}});
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      const Ask& ask = wholes[i];
      const json hold = loop.best(bound, [&] { loop.ask(ask); });
      CAPTURE(role);
      CAPTURE(ask.topic);
      CAPTURE(ask.what);
      CAPTURE(hold.dump());
      CHECK(hold["ms"].get<double>() < bound);
      if (hold["ms"].get<double>() < noticeable) continue;
      const auto least = [&](const std::vector<Ask>& asks, double enough = 0) {
        return loop
            .best(
                enough, [&] { loop.ask(asks[i]); }, 20)["ms"]
            .get<double>();
      };
      // Large messages leave the caches sooner while other programs use them: growth is there each time or
      // not at all.
      double whole = 0;
      double half = 0;
      double quarter = 0;
      const auto grows = [&] {
        whole = least(wholes, noticeable);
        if (whole < noticeable) return false;
        half = least(halves);
        quarter = least(quarters);
        return is_quadratic(quarter, half, whole);
      };
      bool is_growing = grows();
      for (int again = 0; again < 4 && is_growing; ++again) is_growing = grows();
      CAPTURE(whole);
      CAPTURE(half);
      CAPTURE(quarter);
      CHECK_FALSE(is_growing);
    }
  }
}

TEST_CASE("a journal of all hosts does not hold the loop, however a user names them") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  for (const Inventory& inventory : inventories()) {
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      const Ask ask{what, "resource.journal", targets_payload(text), wire::flag_streaming};
      std::uint32_t errnum = 0;
      const json hold = loop.best(bound, [&] { errnum = loop.ask(ask); });
      CAPTURE(inventory.what);
      CAPTURE(what);
      CAPTURE(hold.dump());
      // Nothing is known of those that are not there, and no more is to be said then.
      CHECK(errnum == (what.starts_with("after") ? wire_errno::inval : 0));
      CHECK(hold["ms"].get<double>() < bound);
    }
  }
}

TEST_CASE("targets that an operator names, and cannot have, hold the loop for no longer than an answer") {
  const double bound = on_this_machine(5);
  for (const Inventory& inventory : inventories()) {
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      for (const std::string topic : {"drain", "undrain", "property", "shrink", "monitor-force-down"}) {
        // The last one is not there.
        const std::string last =
            what.find("rank") == std::string::npos && what != "as an idset" ? ",zzz" : ",99999";
        const std::string payload =
            topic == "monitor-force-down"
                ? R"({"ranks":")" + text + last + "\"}"
                : targets_payload(text + last, topic == "property" ? R"(,"op":"add","name":"p")" : "");
        const json hold = loop.best(bound, [&] {
          CHECK(loop.ask_as_owner({what, "resource." + topic, payload}) == wire_errno::inval);
        });
        CAPTURE(inventory.what);
        CAPTURE(what);
        CAPTURE(topic);
        CAPTURE(hold.dump());
        CHECK(hold["ms"].get<double>() < bound);
      }
    }
  }
}

TEST_CASE("hostile hostlists get an error of one line over each transport, and hold the loop for nobody") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  Loop loop("user");
  RawClient bus(loop.daemon.uri());
  const json before = loop.owner.call("resource.status").json();
  const auto check = [](const RawResponse& response) {
    CHECK(response.errnum == wire_errno::inval);
    const std::string text = response.text();
    CHECK_FALSE(text.empty());
    CHECK(text.size() < 500);
    CHECK(std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; }));
  };
  for (const auto& [what, text] : hostile_hostlists()) {
    CAPTURE(what);
    const std::string payload = targets_payload(text) + '\0';
    const json by_user = loop.best(bound, [&] {
      const auto asker = loop.client();
      check(
          loop.response_to(*asker, {what, "resource.journal", targets_payload(text), wire::flag_streaming}));
    });
    CAPTURE(by_user.dump());
    CHECK(by_user["ms"].get<double>() < bound);
    for (const char* topic : {"resource.drain", "resource.journal"}) {
      CAPTURE(topic);
      const std::uint8_t flags =
          topic == std::string_view("resource.journal") ? wire::flag_streaming : std::uint8_t{0};
      const json by_owner =
          loop.best(bound, [&] { check(bus.receive(bus.send_text(topic, payload, flags))); });
      CAPTURE(by_owner.dump());
      CHECK(by_owner["ms"].get<double>() < bound);
    }
  }
  CHECK(loop.owner.call("resource.status").json() == before);
}

/// Resident memory of a process, in bytes.
std::size_t resident(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_CASE("a thousand streams of all hosts take little memory, and hold the loop no longer than one") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  constexpr std::size_t streams = 1000;
  for (const Inventory& inventory : inventories()) {
    CAPTURE(inventory.what);
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      if (what != "in no order" && what != "as a range" && what != "as an idset") continue;
      CAPTURE(what);
      const std::string payload = payload_of(json{{"targets", text}});
      const std::size_t before = resident(loop.daemon.process().pid());
      const auto reader = loop.client();
      std::size_t opened = 0;
      const auto open = [&] {
        const auto matchtag = static_cast<std::uint32_t>(++opened);
        reader->send(local_frame(request_parts("resource.journal", matchtag, payload, wire::flag_streaming)));
        // The history, up to the sentinel.
        for (bool is_live = false; !is_live;) {
          const RawResponse response = reader->response();
          REQUIRE(response.errnum == 0);
          is_live = response.payload.starts_with(R"({"events":[]})");
        }
      };
      // The last ones are looked at.
      constexpr int tries = 20;
      while (opened < streams - tries) open();
      const json opening = loop.best(bound, open, tries);
      CHECK(opening["ms"].get<double>() < bound);
      while (opened < streams) open();
      const std::size_t more = resident(loop.daemon.process().pid()) - before;
      const auto drain = [&] {
        const json change{{"targets", "5"}, {"mode", "overwrite"}, {"reason", "x"}};
        REQUIRE(loop.owner.call("resource.drain", change).errnum == 0);
        for (std::size_t i = 0; i < streams; ++i) REQUIRE(reader->response().errnum == 0);
      };
      const json hold = loop.best(bound, drain);
      CAPTURE(hold.dump());
      CHECK(more < 16 * mib);
      CHECK(hold["ms"].get<double>() < bound);
    }
  }
}

TEST_CASE("the first status and the first response to an acquire after a change may take longer") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(5);
  Loop loop("scheduler");
  // Every third target, so that no range is left.
  std::string targets = "0";
  for (int i = 3; i < 16384; i += 3) targets += fmt::format(",{}", i);
  REQUIRE(loop.owner.call("resource.drain", {{"targets", targets}, {"reason", "x"}}).errnum == 0);
  int changes = 0;
  for (const std::string topic : {"resource.status", "resource.sched-status", "resource.get",
                                  "resource.acquire", "feasibility.check", "attr.get"}) {
    json least;
    for (int i = 0; i < 20; ++i) {
      const std::string name = fmt::format("p{}", ++changes);
      const json change{{"op", "add"}, {"name", name}, {"targets", "1,5,7"}};
      REQUIRE(loop.owner.call("resource.property", change).errnum == 0);
      REQUIRE(loop.owner.call("resource.stats-clear").errnum == 0);
      loop.ask({"", topic,
                topic == "feasibility.check" ? R"({"jobspec":{"resources":[{"type":"node","count":1}]}})"
                : topic == "attr.get"        ? R"({"name":"hostlist"})"
                                             : "",
                topic == "resource.acquire" ? wire::flag_streaming : std::uint8_t{0}});
      const json hold = loop.longest_hold();
      if (least.is_null() || hold["ms"] < least["ms"]) least = hold;
      if (least["ms"] < bound) break;
    }
    CAPTURE(topic);
    CAPTURE(least.dump());
    CHECK(least["ms"].get<double>() < bound);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
