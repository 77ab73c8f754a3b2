// The screen of `resourcectl top`, and the bytes that draw it.
#include "cli/views/overview.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/screen/screen.hpp"
#include "cli/views/text_width.hpp"

using namespace resourced::cli::views;

namespace resourced::test {
namespace {

using nlohmann::json;

std::vector<std::string> texts(const std::vector<Line>& lines) {
  std::vector<std::string> all;
  for (const Line& line : lines) all.push_back(line.text);
  return all;
}

/// Eight nodes: 2-3 are drained, 2 is allocated, 7 is offline, and 6 is excluded.
const json& answer() {
  static const json status = json::parse(
      R"({"R":{"version":1,"execution":{"R_lite":[{"rank":"0-7","children":{"core":"0-1"}}],)"
      R"("nodelist":["node[0-7]"],"starttime":0.0,"expiration":0.0}},)"
      R"("drain":{"2":{"timestamp":500.0,"reason":"disk"},"3":{"timestamp":940.0,"reason":""}},)"
      R"("online":"0-6","offline":"7","exclude":"6","torpid":"","allocated":"1-2","unchecked":"4",)"
      R"("partitions":{"night":{"targets":"0-1","held":true,"waiting":"","leaving":""}}})");
  return status;
}

struct Shown {
  proto::topics::Status status = proto::topics::parse_status(answer());
  Overview overview;

  Shown() {
    overview.uri = "ipc:///bus";
    overview.now = wall_time(1000);
    overview.status = &status;
    overview.peers.emplace();
    overview.peers->holders.push_back(
        {text::IdSet::parse("0-1"), wall_time(900), module::ByKey{"batch"}, "night", true});
    overview.peers->agents = text::IdSet::parse("0-6");
    for (int i = 0; i < 50; ++i) {
      overview.events.push_back(
          {{"timestamp", 950 + i}, {"name", "online"}, {"context", {{"idset", std::to_string(i % 8)}}}});
    }
  }
  [[nodiscard]] std::vector<Line> lines(Size size) const { return render_overview(overview, size, {}); }
};

std::string clock(double time) { return format_time(wall_time(time)).substr(11, 8); }

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST_CASE("a large screen has all parts") {
  const auto lines = texts(Shown().lines({80, 120}));
  CHECK(lines[0] == "live " + clock(1000) + " ipc:///bus");
  CHECK(lines[1] == "8 nodes, 16 cores, 0 gpus; 7 online, 2 allocated, 1 unchecked, 7 agents");
  CHECK(has(lines, "avail         4 node[0-1,4-5]"));
  CHECK(has(lines, "draining      1 node2"));
  CHECK(has(lines, "drained       1 node3"));
  CHECK(has(lines, "excluded      1 node6"));
  CHECK(has(lines, "offline       1 node7"));
  CHECK(has(lines, "night            2     2       0 key batch since " + format_time(wall_time(900))));
  // The list of drains begins with the oldest one.
  CHECK(has(lines, "     8m     1 -            disk / node2"));
  CHECK(has(lines, "     1m     1 -            - / node3"));
  CHECK(lines.back() == clock(999) + " online node1");
}

TEST_CASE("schedulers that wait, and the time until which targets are kept for a lost one, are shown") {
  Shown shown;
  auto& peers = *shown.overview.peers;
  peers.holders[0].kept_until = wall_time(1900);
  peers.holders.push_back(
      {text::IdSet::parse("2-7"), wall_time(910), module::ByKey{"day"}, "", false, wall_time(1910)});
  peers.waiting.push_back({wall_time(920), module::ByKey{"next"}, ""});
  peers.waiting.push_back({wall_time(930), module::ByKey{"later"}, "night"});
  const auto lines = texts(shown.lines({80, 120}));
  CHECK(has(lines, "night            2     2       0 key batch since " + format_time(wall_time(900)) +
                       ", kept until " + format_time(wall_time(1900))));
  CHECK(has(lines, "key day          6 " + format_time(wall_time(910)) + ", kept until " +
                       format_time(wall_time(1910))));
  CHECK(has(lines, "key next     waits " + format_time(wall_time(920))));
  CHECK(has(lines, "key later    waits " + format_time(wall_time(930)) + " for night"));
}

TEST_CASE("an event is a line with its hosts, its reason and its author") {
  Shown shown;
  shown.overview.now = wall_time(100000);
  const auto line = [&](double time, const char* name, const char* context) {
    shown.overview.events = {{{"timestamp", time}, {"name", name}, {"context", json::parse(context)}}};
    return texts(shown.lines({40, 120})).back();
  };
  CHECK(line(99000, "drain",
             R"({"idset":"1-2","nodelist":"node[1-2]","reason":"disk","overwrite":0,"by":{"key":"ops"}})") ==
        clock(99000) + " drain node[1-2]: disk by key ops");
  CHECK(line(5, "undrain", R"({"idset":"1","nodelist":"node1"})") ==
        format_time(wall_time(5)) + " undrain node1");
  CHECK(line(99000, "property-update",
             R"({"nodelist":"node1","property-add":{"fast":"1"},"property-remove":{"slow":"1"}})") ==
        clock(99000) + " property-update +fast -slow node1");
  CHECK(line(99000, "resource-define", R"({"method":"reload"})") ==
        clock(99000) + " resource-define (reload)");
  CHECK(line(99000, "drain", R"({"idset":1})") == "an event that cannot be read");
  shown.overview.events = {json(1)};
  CHECK(texts(shown.lines({40, 120})).back() == "an event that cannot be read");
}

TEST_CASE("no screen is too small") {
  const Shown shown;
  for (std::size_t rows = 0; rows < 30; ++rows) {
    for (const std::size_t columns : {0, 1, 2, 7, 39, 80}) {
      const auto lines = shown.lines({rows, columns});
      CHECK(lines.size() <= rows);
      for (const Line& line : lines) {
        std::size_t width = 0;
        for (const char byte : line.text)
          width += (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U ? 1 : 0;
        CHECK(width <= columns);
      }
      if (rows > 12 && columns == 80) {
        CHECK(lines.size() == rows);
        CHECK(lines.back().text.ends_with(" online node1"));
      }
    }
  }
}

TEST_CASE("parts that have no room say how much they leave out") {
  Shown shown;
  for (int i = 0; i < 30; ++i) shown.status.drains.push_back(shown.status.drains.front());
  const auto lines = texts(shown.lines({30, 80}));
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [](const std::string& line) { return line.ends_with(" more"); }));
  CHECK(has(lines, "EVENTS"));
}

TEST_CASE("a view that is not live says since when and why") {
  Shown shown;
  shown.overview.loss = "connection lost";
  shown.overview.lost_at = wall_time(990);
  const Line line = shown.lines({24, 80}).front();
  CHECK(line.style == Style::alarm);
  CHECK(line.text == "NOT LIVE since " + clock(990) + ": connection lost");
  shown.overview.status = nullptr;
  CHECK(shown.lines({24, 80})[1].text == "the daemon has no inventory yet");
}

TEST_CASE("a text is cut by the columns that it takes") {
  CHECK(fit("abc", 3) == "abc");
  CHECK(fit("abcd", 3) == "ab…");
  CHECK(fit("abc", 1) == "…");
  CHECK(fit("abc", 0).empty());
  CHECK(fit("", 0).empty());
  // Each of these characters takes two columns; a combining accent takes none.
  CHECK(fit("日本語", 6) == "日本語");
  CHECK(fit("日本語", 5) == "日本…");
  CHECK(fit("日本語", 4) == "日…");
  CHECK(fit("e\u0301e\u0301e", 3) == "e\u0301e\u0301e");
  CHECK(fit("a\x1b[2Jb", 80) == R"(a\u001b[2Jb)");
  CHECK(fit(std::string(1000000, 'x'), 10) == "xxxxxxxxx…");
}

TEST_CASE("a frame clears each line before it is drawn, and has colours only if they are wanted") {
  const std::vector<Line> lines{{"title", Style::title}, {"bad", Style::bad}};
  CHECK(cli::screen::encode_frame(lines, 3, true) ==
        "\x1b[H\x1b[K\x1b[7mtitle\x1b[0m\r\n\x1b[K\x1b[31mbad\x1b[0m\r\n\x1b[K");
  CHECK(cli::screen::encode_frame(lines, 2, false) == "\x1b[H\x1b[K\x1b[7mtitle\x1b[0m\r\n\x1b[Kbad");
}

}  // namespace
}  // namespace resourced::test
