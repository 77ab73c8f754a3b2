// Runs the scripts of tests/unit/core_module/transcripts/*.txt: commands, each followed by its expected
// effects. tests/unit/core_module/transcripts/README.md describes the format.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/targets.hpp"
#include "world.hpp"

using namespace resourced::module;

namespace resourced::test {

using rset::ResourceSet;
using text::IdSet;

namespace {

std::string properties_text(const ResourceSet::Properties& properties) {
  std::string text;
  for (const auto& [name, ranks] : properties) text += fmt::format(" {}:{}", name, ranks.encode());
  return text;
}

std::string delta_text(const Delta& delta) {
  std::string text;
  if (!delta.up.empty()) text += " up=" + delta.up.encode();
  if (!delta.down.empty()) text += " down=" + delta.down.encode();
  if (!delta.shrink.empty()) text += " shrink=" + delta.shrink.encode();
  if (!delta.property_add.empty()) text += " property-add" + properties_text(delta.property_add);
  if (!delta.property_remove.empty()) text += " property-remove" + properties_text(delta.property_remove);
  if (delta.expiration) text += fmt::format(" expiration={}", to_number(*delta.expiration));
  return text;
}

class Script {
 public:
  Script()
      : world_([this](const std::string& name, const Delta& delta) { say(name + ":" + delta_text(delta)); }) {
  }

  std::vector<std::string> run(const std::string& line) {
    heard_.clear();
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    try {
      carry_out(verb, arguments);
    } catch (const Error& error) {
      say(fmt::format("error {} {}", error.errnum(), error.what()));
    }
    return heard_;
  }

 private:
  void say(const std::string& text) { heard_.push_back(text); }

  static std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name) {
    const auto found =
        std::ranges::find_if(words, [&](const std::string& word) { return word.starts_with(name + "="); });
    if (found == words.end()) return std::nullopt;
    std::string value = found->substr(name.size() + 1);
    words.erase(found);
    return value;
  }

  static DrainMode take_mode(std::vector<std::string>& words) {
    if (words.empty()) return DrainMode::none;
    const std::string word = words.front();
    const DrainMode mode = word == "-u"    ? DrainMode::update
                           : word == "-f"  ? DrainMode::overwrite
                           : word == "-ff" ? DrainMode::force_overwrite
                                           : DrainMode::none;
    if (mode != DrainMode::none) words.erase(words.begin());
    return mode;
  }

  static std::optional<std::string> rest(const std::vector<std::string>& words, std::size_t from) {
    if (words.size() <= from) return std::nullopt;
    return fmt::format("{}", fmt::join(words.begin() + static_cast<std::ptrdiff_t>(from), words.end(), " "));
  }

  void carry_out(const std::string& verb, std::vector<std::string> words) {
    if (verb == "time") {
      world_.pass(std::stod(words.at(0)));
    } else if (verb == "start" || verb == "restart") {
      start(verb == "restart", words);
    } else if (verb == "start-agents") {
      start_agents(words);
    } else if (verb == "acquire") {
      const auto partition = take_option(words, "partition");
      const auto [targets, up] = world_.acquire(words.at(0), partition);
      say(fmt::format("{}: resources={} up={}", words.at(0), targets.encode(), up.encode()));
    } else if (verb == "release") {
      world_.release(words.at(0));
    } else if (verb == "drain") {
      const DrainMode mode = take_mode(words);
      world_.execute(DrainCommand{{rest(words, 1)}, words.empty() ? "" : words[0], mode});
    } else if (verb == "undrain") {
      const DrainMode mode = take_mode(words);
      world_.execute(UndrainCommand{words.at(0), rest(words, 1), mode});
    } else if (verb == "property") {
      const auto op = words.at(0) == "add" ? PropertyCommand::Op::add : PropertyCommand::Op::remove;
      world_.execute(PropertyCommand{op, words.at(1), words.at(2)});
    } else if (verb == "expiration") {
      world_.execute(ExpirationCommand{wall_time(std::stod(words.at(0)))});
    } else if (verb == "shrink") {
      world_.execute(ShrinkCommand{words.at(0)});
    } else {
      carry_out_other(verb, words);
    }
  }

  void carry_out_other(const std::string& verb, std::vector<std::string> words) {
    if (verb == "reload") {
      ReloadCommand command;
      if (const auto exclude = take_option(words, "exclude")) command.exclude = IdSet::parse(*exclude);
      world_.execute(command);
    } else if (verb == "divide") {
      std::vector<Partition> partitions;
      for (const std::string& word : words) {
        const auto equal = word.find('=');
        partitions.push_back({word.substr(0, equal), IdSet::parse(word.substr(equal + 1))});
      }
      world_.divide(std::move(partitions));
    } else if (verb == "partitions") {
      std::vector<Partition> partitions = world_.acquisition().partitions();
      partitions.push_back(world_.acquisition().rest(world_.module().inventory().ranks()));
      for (const Partition& partition : partitions) {
        say(fmt::format("{}: targets={} waiting={} leaving={}",
                        partition.name.empty() ? "(none)" : partition.name, partition.targets.encode(),
                        world_.acquisition().awaited(partition, world_.module().acquirable()).encode(),
                        world_.acquisition().leaving(partition).encode()));
      }
    } else if (verb == "mute") {
      world_.acquisition().mute();
    } else if (verb == "hello" || verb == "beat" || verb == "gone" || verb == "goodbye") {
      carry_out_agents(verb, IdSet::parse(words.at(0)));
    } else if (verb == "online") {
      world_.apply(OnlineEvent{IdSet::parse(words.at(0))});
    } else if (verb == "offline") {
      world_.apply(OfflineEvent{IdSet::parse(words.at(0))});
    } else if (verb == "torpid") {
      world_.apply(TorpidEvent{IdSet::parse(words.at(0))});
    } else if (verb == "lively") {
      world_.apply(LivelyEvent{IdSet::parse(words.at(0))});
    } else if (verb == "drains") {
      for (const auto& [key, ranks] : world_.module().drains().groups()) {
        say(fmt::format("{} at {}: {}", ranks.encode(), to_number(key.timestamp),
                        key.reason.value_or("(no reason)")));
      }
    } else if (verb == "inventory") {
      const ResourceSet& inventory = world_.module().inventory();
      say(fmt::format("{} {} expiration={}{}", inventory.ranks().encode(), inventory.nodelist().encode(),
                      to_number(inventory.expiration()), properties_text(inventory.properties())));
    } else {
      FAIL("the script has an unknown command: ", verb);
    }
  }

  void carry_out_agents(const std::string& verb, const IdSet& ranks) {
    ranks.for_each([&](IdSet::Id rank) {
      nodes::Monitor& monitor = world_.monitor();
      if (verb == "hello") monitor.hello(rank, steady_time(world_.now));
      if (verb == "beat") monitor.beat(rank, steady_time(world_.now));
      if (verb == "gone") monitor.gone(rank, steady_time(world_.now));
      if (verb == "goodbye") monitor.goodbye(rank, steady_time(world_.now));
    });
  }

  void start_agents(std::vector<std::string>& words) {
    const auto exclude = take_option(words, "exclude");
    nodes::MonitorSettings settings;
    if (const auto count = take_option(words, "flap-count")) settings.flap_count = std::stoul(*count);
    if (const auto lost = take_option(words, "lost-after")) settings.lost_after = Seconds(std::stod(*lost));
    auto inventory = make_inventory(words.at(0), {});
    const IdSet excluded = exclude ? parse_targets(*exclude, *inventory) : IdSet{};
    world_.start_with_agents(std::move(inventory), excluded, settings);
  }

  void start(bool again, std::vector<std::string>& words) {
    const auto exclude = take_option(words, "exclude");
    ResourceSet::Properties properties;
    for (const std::string& word : words) {
      if (const auto colon = word.find(':'); colon != std::string::npos) {
        properties[word.substr(0, colon)] = IdSet::parse(word.substr(colon + 1));
      }
    }
    auto inventory = make_inventory(words.at(0), properties);
    const IdSet excluded = exclude ? parse_targets(*exclude, *inventory) : IdSet{};
    if (again) {
      world_.restart(std::move(inventory), excluded);
    } else {
      world_.start(std::move(inventory), excluded);
    }
  }

  World world_;
  std::vector<std::string> heard_;
};

void play(const std::filesystem::path& path) {
  std::ifstream file(path);
  Script script;
  std::vector<std::string> heard;
  std::size_t said = 0;
  int number = 0;
  const auto nothing_left = [&](int line) {
    for (; said < heard.size(); ++said) {
      FAIL_CHECK(path.filename().string(), ":", line, ": the script does not have `", heard[said], "`");
    }
  };
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      nothing_left(number);
      heard = script.run(line);
      said = 0;
      continue;
    }
    const std::string expected = line.substr(line.find_first_not_of(' '));
    INFO(path.filename().string(), ":", number);
    REQUIRE_MESSAGE(said < heard.size(), "nothing is said, but expected: ", expected);
    CHECK(heard[said++] == expected);
  }
  nothing_left(number);
}

TEST_CASE("scripts of tests/unit/core_module/transcripts") {
  int played = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(RESOURCED_SOURCE "/tests/unit/core_module/transcripts")) {
    if (entry.path().extension() != ".txt") continue;
    SUBCASE(entry.path().filename().string().c_str()) { play(entry.path()); }
    ++played;
  }
  CHECK(played >= 4);
}

}  // namespace
}  // namespace resourced::test
