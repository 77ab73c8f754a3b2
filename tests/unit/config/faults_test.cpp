// Several errors of one configuration, and the sample's inventory.
#include "config/faults.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/config.hpp"
#include "config/sample.hpp"
#include "temp_dir.hpp"

using namespace resourced::config;
using resourced::Error;
using resourced::test::TempDir;

namespace {

/// The errors of a configuration, without the name of the directory.
std::vector<std::string> errors_of(const TempDir& dir) {
  std::vector<std::string> lines;
  try {
    (void)load(dir.path());
  } catch (const Faults& faults) {
    lines = faults.lines();
    CHECK(std::string_view(faults.what()).find('\n') == std::string_view::npos);
    CHECK(std::string(faults.what()).starts_with(lines.front() + "; "));
  } catch (const Error& error) {
    lines = {error.what()};
  }
  for (auto& line : lines) {
    for (std::size_t at; (at = line.find(dir.path() + '/')) != std::string::npos;)
      line.erase(at, dir.path().size() + 1);
  }
  return lines;
}

}  // namespace

TEST_CASE("all errors of a configuration are told, each with its file and line, and with what may be meant") {
  const TempDir dir;
  std::ofstream(dir.file("a.toml")) << "[[resource.config]]\n"
                                       "hots = \"node[0-7]\"\n"
                                       "[[resource.config]]\n"
                                       "hosts = \"node[0-7\"\n"
                                       "[buss]\n";
  std::ofstream(dir.file("b.toml")) << "[log]\n"
                                       "levle = \"info\"\n"
                                       "level = \"loud\"\n"
                                       "[store]\n"
                                       "history = -1\n"
                                       "[[acquire.partition]]\n"
                                       "name = \"\"\n"
                                       "targets = \"0\"\n";
  const auto lines = errors_of(dir);
  const std::vector<std::string> beginnings{
      "a.toml:5: buss: unknown table, the nearest known one is bus",
      "a.toml:2: resource.config[0].hots: unknown key, not one of hosts, cores, gpus, properties; did you "
      "mean "
      "hosts?",
      "a.toml:4: resource.config[1].hosts: ",
      "b.toml:7: acquire.partition[0].name: is empty",
      "b.toml:5: store.history: ",
      "b.toml:2: log.levle: unknown key, not one of level; did you mean level?",
      "b.toml:3: log.level: \"loud\" is not a log level",
  };
  REQUIRE(lines.size() == beginnings.size());
  for (const auto& beginning : beginnings) {
    CAPTURE(beginning);
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [&](const auto& line) { return line.starts_with(beginning); }));
  }
}

TEST_CASE("a file of very many errors is not read to its end") {
  const TempDir dir;
  {
    std::ofstream file(dir.file("a.toml"));
    for (int i = 0; i < 100000; ++i) file << fmt::format("unknown{} = 1\n", i);
  }
  const auto lines = errors_of(dir);
  CHECK(lines.size() == 21);
  CHECK(lines.back() == "there are more errors");
}

TEST_CASE("the inventory of the sample is known, and no other") {
  CHECK(has_sample_inventory(load(RESOURCED_SOURCE "/config/resourced.toml")));
  const TempDir dir;
  std::ofstream(dir.file("a.toml")) << "[[resource.config]]\nhosts = \"node[0-7]\"\ncores = \"0-3\"\n";
  CHECK(!has_sample_inventory(load(dir.path())));
  CHECK(!has_sample_inventory(Config{}));
}
