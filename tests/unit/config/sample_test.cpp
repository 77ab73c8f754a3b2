// The packaged configuration: it is valid, it matches the table of settings, and uncommenting its settings
// changes nothing.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "config/setting.hpp"
#include "config_fixture.hpp"
#include "sample_text.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::load_text;
using resourced::test::sample_text;

namespace {

const std::string sample_path = RESOURCED_SOURCE "/config/resourced.toml";

std::string sample_file() {
  std::ifstream in(sample_path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The sample with its commented settings (`#key = value`, `#[table]`) uncommented.
std::string uncommented() {
  std::istringstream in(sample_file());
  std::string text;
  for (std::string line; std::getline(in, line);) {
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    text += setting ? line.substr(1) : line;
    text += '\n';
  }
  return text;
}

}  // namespace

// To write the file, run: RESOURCED_WRITE_SAMPLE=1 build/default/tests/test_config -tc="the sample*table*"
TEST_CASE("the sample is what the table of settings gives") {
  if (std::getenv("RESOURCED_WRITE_SAMPLE") != nullptr) std::ofstream(sample_path) << sample_text();
  CHECK(sample_file() == sample_text());
}

TEST_CASE("the sample configuration is an inventory of eight nodes") {
  const Config config = load(sample_path);
  const Inventory inventory = load_inventory(config);
  CHECK(inventory.resources.counts() == rset::ResourceCounts{8, 32, 4});
  CHECK(inventory.resources.nodelist().encode() == "node[0-7]");
  CHECK(inventory.exclude.empty());
  CHECK(config.bus.listen.empty());
  CHECK(config.store.directory.empty());
  CHECK(config.acquire.partitions.empty());
}

TEST_CASE("every setting that the sample shows is accepted, and the default it shows is the default") {
  const Config shown = load_text(uncommented());
  const Config none;
  for (const Setting& setting : settings()) {
    if (!setting.value.tell || !setting.example.empty()) continue;
    CAPTURE(setting.section);
    CAPTURE(setting.key);
    CHECK(setting.value.tell(shown) == setting.value.tell(none));
  }
  CHECK(shown.resource.verify == none.resource.verify);
  CHECK(shown.acquire.partitions.size() == 2);
  CHECK(shown.access.rules.size() == 1);
  REQUIRE(shown.access.keys.size() == 2);
  CHECK(shown.access.keys[1].hosts == text::Hostlist::parse("node[0-7]"));
  CHECK(shown.queues == std::vector<Queue>{{"batch", "node[0-5]"}});
}

TEST_CASE("the sample shows every setting") {
  const nlohmann::json shown = to_json(load_text(uncommented()));
  const auto in_section = [&](std::string_view section, std::string_view key) {
    if (section == "queues.NAME") return shown["queues"]["batch"].contains(key);
    nlohmann::json::json_pointer place("/" + std::string(section));
    if (const auto dot = section.find('.'); dot != std::string_view::npos)
      place = nlohmann::json::json_pointer("/" + std::string(section.substr(0, dot)) + "/" +
                                           std::string(section.substr(dot + 1)));
    const nlohmann::json& table = shown.at(place);
    if (table.is_object()) return table.contains(key);
    return std::ranges::any_of(table, [&](const nlohmann::json& entry) { return entry.contains(key); });
  };
  for (const Setting& setting : settings()) {
    CAPTURE(setting.section);
    CAPTURE(setting.key);
    CHECK(in_section(setting.section, setting.key));
  }
}
