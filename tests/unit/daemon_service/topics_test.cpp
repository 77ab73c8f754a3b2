// The table of topics, and the tables of the documents that repeat it for readers.
#include "daemon/service/topics.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "os/file.hpp"

namespace resourced::daemon::service {
namespace {

/// The cells of a row of a Markdown table.
using Row = std::vector<std::string>;

/// The rows of all tables of a page that have this header.
std::vector<Row> rows_of(const std::string& page, std::string_view header) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::istringstream lines(os::read_file(RESOURCED_SOURCE "/docs/" + page, most));
  std::vector<Row> rows;
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) {
      // Skips the line of dashes below the header.
      if (!line.starts_with("|---")) is_inside = false;
    } else if (is_inside) {
      Row row;
      // The last cell may be empty.
      for (std::size_t at = 2; at < line.size() && line[at] != '|';) {
        const std::size_t end = std::min(line.find(" |", at), line.size());
        row.push_back(line.substr(at, end - at));
        at = end + 3;
      }
      rows.push_back(std::move(row));
    } else {
      is_inside = line == header;
    }
  }
  return rows;
}

/// The names in backticks, in their order.
std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at)) {
    const std::size_t end = cell.find('`', at + 1);
    names.push_back(cell.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return names;
}

std::string role_of(const Topic& topic) {
  const std::string also = topic.is_for_admins ? ", admin" : "";
  return topic.right == peers::Right::none ? "any" : std::string(peers::role_for(topic.right)) + also;
}

std::string responses_of(const Topic& topic) {
  if (topic.answer == Answer::none) return "none";
  return topic.answer == Answer::stream ? "stream" : "one";
}

TEST_CASE("each topic has one row, with a handler") {
  std::set<std::string_view> names;
  for (const Topic& topic : Topics::all()) {
    CAPTURE(topic.name);
    CHECK(names.insert(topic.name).second);
    CHECK((topic.handle != nullptr));
    CHECK(topic.bound.bytes > 0);
    CHECK(Topics::find(topic.name) == &topic);
  }
  CHECK(Topics::find("resource.nothing") == nullptr);
}

TEST_CASE("docs/protocol.md has the role and the responses of each topic") {
  std::map<std::string, Row> expected;
  for (const Topic& topic : Topics::all())
    expected[std::string(topic.name)] = {role_of(topic), responses_of(topic)};
  std::map<std::string, Row> found;
  for (const Row& row : rows_of("protocol.md", "| topic | role | responses |")) {
    REQUIRE(row.size() == 3);
    found[names_in(row[0]).at(0)] = {row[1], row[2]};
  }
  CHECK(found == expected);
}

TEST_CASE("docs/security.md has the role of each topic") {
  std::map<std::string, std::string> expected;
  for (const Topic& topic : Topics::all()) expected[std::string(topic.name)] = role_of(topic);
  std::map<std::string, std::string> found;
  for (const Row& row : rows_of("security.md", "| Topic | Requires | |"))
    found[names_in(row.at(0)).at(0)] = row.at(1);
  CHECK(found == expected);
}

TEST_CASE("docs/cluster.md has what becomes of requests while etcd does not confirm a change") {
  std::map<std::string, std::string> found;
  std::string of_changes;
  for (const Row& row : rows_of("cluster.md", "| topic | meanwhile |")) {
    for (const std::string& name : names_in(row.at(0))) found[name] = row.at(1);
    if (row.at(0).starts_with("changes, ")) of_changes = row.at(1);
  }
  CHECK(of_changes == "EAGAIN");
  for (const Topic& topic : Topics::all()) {
    CAPTURE(topic.name);
    const auto row = found.find(std::string(topic.name));
    const std::string told = row == found.end() ? "" : row->second;
    if (topic.name == "resource.ready" || topic.name == "resource.cluster") {
      // These topics are served: their own answer is this refusal.
      CHECK(topic.shows == Shows::nothing);
      CHECK(told.starts_with("EAGAIN"));
    } else if (topic.shows == Shows::committed) {
      CHECK(told.starts_with("the committed state"));
    } else if (topic.needs == Needs::commits) {
      CHECK(told.empty());
    } else if (!told.empty()) {
      CHECK(told == (topic.shows == Shows::nothing ? "as always" : "they wait for the commit"));
    }
  }
}

TEST_CASE("docs/security.md has the bounds of payloads") {
  constexpr std::size_t kib = 1024;
  std::string told;
  for (const Row& row : rows_of("security.md", "| limit | default | when exceeded |"))
    if (row.at(0) == "payload of a request") told = row.at(1);
  // The names in each part between semicolons; the first part is the bound of all other topics.
  std::vector<std::vector<std::string>> parts;
  std::istringstream text(told);
  for (std::string part; std::getline(text, part, ';');) parts.push_back(names_in(part));
  REQUIRE(told.starts_with("16 KiB; of "));
  REQUIRE(parts.size() == 5);
  const auto is_in = [&](std::size_t part, std::string_view name) {
    return std::ranges::find(parts[part], name) != parts[part].end();
  };
  for (const Topic& topic : Topics::all()) {
    CAPTURE(topic.name);
    const bool is_of_operators = topic.right == peers::Right::operate || topic.right == peers::Right::own;
    std::size_t bytes = 16 * kib;
    if (is_in(1, topic.name) || is_in(2, topic.name)) bytes = 64 * kib;
    // The last part names the operators' topics that do not have 1 MiB.
    if (is_in(3, topic.name) || (is_of_operators && !is_in(4, topic.name))) bytes = 1024 * kib;
    CHECK(topic.bound.bytes == bytes);
    CHECK(topic.bound.bytes_a_target == (is_in(2, topic.name) ? 8 : 0));
  }
}

}  // namespace
}  // namespace resourced::daemon::service
