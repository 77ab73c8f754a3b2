// Targets that left for good and return: unshrink, and the reload or restart that follows.
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "fold.hpp"

namespace resourced::engine {

using text::IdSet;

namespace {

/// A daemon on hosts n0 to n3, without a scheduler, and the state that its log has.
struct Cluster {
  Engine engine;
  Fold fold;

  explicit Cluster(Fold recorded = {}) : fold(std::move(recorded)) {
    rset::ResourceSet set({{IdSet::range(0, 3), IdSet::range(0, 1), {}}}, text::Hostlist::parse("n[0-3]"));
    set.add_property("fast", IdSet::parse("2-3"));
    Start input;
    input.command.inventory = std::make_shared<const rset::ResourceSet>(std::move(set));
    input.command.online = input.command.inventory->ranks();
    input.state = fold.state;
    (void)step(input);
  }
  Effects step(const Input& input) {
    Effects effects = engine.step(input, {wall_time(20), steady_time(20)});
    for (const Record& record : effects.records) fold.apply(record);
    return effects;
  }
  Effects change(module::Command command) { return step(std::move(command)); }
  Effects reload(std::string_view online = "0-3") {
    module::ReloadCommand command;
    command.online = IdSet::parse(online);
    return change(std::move(command));
  }
  [[nodiscard]] const module::Module& module() const { return engine.module(); }
  [[nodiscard]] std::string ranks() const { return module().inventory().ranks().encode(); }
};

int refusal(Cluster& cluster, std::string_view targets) {
  try {
    (void)cluster.change(module::UnshrinkCommand{std::string(targets)});
  } catch (const Error& error) {
    return error.errnum();
  }
  return 0;
}

}  // namespace

TEST_CASE("a target returns at the next start after its shrink is taken back") {
  Cluster cluster;
  (void)cluster.change(module::ShrinkCommand{"2-3"});
  const Effects effects = cluster.change(module::UnshrinkCommand{"n3"});
  REQUIRE(effects.records.size() == 1);
  CHECK(effects.records[0].ranks == IdSet{3});
  CHECK(effects.records[0].hosts.encode() == "n3");
  CHECK(effects.updates.empty());
  CHECK(cluster.ranks() == "0-1");
  CHECK(cluster.module().shrunk() == IdSet{2, 3});
  CHECK(cluster.module().returning() == IdSet{3});
  const Cluster next(cluster.fold);
  CHECK(next.ranks() == "0-1,3");
  CHECK(next.module().shrunk() == IdSet{2});
}

TEST_CASE("a target returns at a reload without schedulers, with the changes of the others kept") {
  Cluster cluster;
  (void)cluster.change(module::ShrinkCommand{"3"});
  (void)cluster.change(module::PropertyCommand{module::PropertyCommand::Op::add, "new", "0"});
  (void)cluster.change(module::PropertyCommand{module::PropertyCommand::Op::remove, "fast", "2"});
  (void)cluster.change(module::UnshrinkCommand{"3"});
  (void)cluster.step(Acquire{1, {}});
  CHECK(cluster.reload().records.empty());
  CHECK(cluster.ranks() == "0-2");
  CHECK(cluster.module().returning() == IdSet{3});

  (void)cluster.step(Release{1});
  const Effects effects = cluster.reload();
  REQUIRE(effects.records.size() == 2);
  CHECK(std::holds_alternative<module::DefineEvent>(effects.records[0].event.body));
  CHECK(std::holds_alternative<module::OnlineEvent>(effects.records[1].event.body));
  CHECK(cluster.ranks() == "0-3");
  CHECK(cluster.module().inventory().nodelist().encode() == "n[0-3]");
  CHECK(cluster.module().available() == IdSet::range(0, 3));
  CHECK(cluster.module().inventory().properties().at("fast") == IdSet{3});
  CHECK(cluster.module().inventory().properties().at("new") == IdSet{0});
  CHECK(cluster.module().shrunk().empty());
  CHECK(cluster.module().returning().empty());
  CHECK(cluster.reload().records.empty());
  const Effects acquired = cluster.step(Acquire{2, {}});
  CHECK(acquired.acquired->resources == IdSet::range(0, 3));
}

TEST_CASE("a target that returns is online once its agent says so") {
  Cluster cluster;
  (void)cluster.change(module::ShrinkCommand{"3"});
  (void)cluster.change(module::UnshrinkCommand{"3"});
  (void)cluster.reload("");
  CHECK(cluster.ranks() == "0-3");
  CHECK(cluster.module().available() == IdSet::range(0, 2));
}

TEST_CASE("the shrink of a target that will return takes back its return") {
  Cluster cluster;
  (void)cluster.change(module::ShrinkCommand{"2-3"});
  (void)cluster.change(module::UnshrinkCommand{"2-3"});
  const Effects effects = cluster.change(module::ShrinkCommand{"n3"});
  REQUIRE(effects.records.size() == 1);
  CHECK(effects.records[0].hosts.encode() == "n3");
  CHECK(cluster.module().returning() == IdSet{2});
  CHECK(Cluster(cluster.fold).ranks() == "0-2");
  CHECK_THROWS_WITH_AS(cluster.change(module::ShrinkCommand{"n3"}), "unknown host: n3", Error);
  (void)cluster.reload();
  CHECK(cluster.ranks() == "0-2");
  CHECK(cluster.module().shrunk() == IdSet{3});
}

TEST_CASE("a target that returns is drained as it was when it was removed") {
  Cluster cluster;
  module::DrainCommand drain;
  drain.targets = "3";
  drain.reason = "disk";
  (void)cluster.change(drain);
  drain.from = wall_time(100);
  (void)cluster.change(drain);
  const auto drains = cluster.module().drains().groups();
  const auto scheduled = cluster.module().scheduled_drains().groups();
  (void)cluster.change(module::ShrinkCommand{"3"});
  // A reload or a start without it changes nothing of that.
  module::ReloadCommand exclude;
  exclude.exclude = IdSet{0};
  (void)cluster.change(exclude);
  cluster = Cluster(cluster.fold);
  CHECK(cluster.module().drains().groups().empty());
  CHECK(cluster.module().scheduled_drains().groups().empty());
  (void)cluster.change(module::UnshrinkCommand{"3"});
  const Cluster next(cluster.fold);
  const Effects effects = cluster.reload();
  for (const Cluster* each : {&std::as_const(cluster), &next}) {
    CHECK(each->module().drains().groups() == drains);
    CHECK(each->module().scheduled_drains().groups() == scheduled);
    CHECK_FALSE(each->module().available().contains(3));
  }
  CHECK(effects.updates.empty());
}

TEST_CASE("a target that returns excluded is not drained") {
  Cluster cluster;
  (void)cluster.change(module::DrainCommand{{"disk"}, "3", {}});
  (void)cluster.change(module::ShrinkCommand{"3"});
  (void)cluster.change(module::UnshrinkCommand{"3"});
  module::ReloadCommand exclude;
  exclude.exclude = IdSet{3};
  (void)cluster.change(exclude);
  (void)cluster.reload();
  (void)cluster.reload();
  CHECK(cluster.ranks() == "0-3");
  CHECK(cluster.module().drains().groups().empty());
}

TEST_CASE("a target that returns has none of its earlier changes of properties, after a reload or a start") {
  Cluster cluster;
  (void)cluster.change(module::PropertyCommand{module::PropertyCommand::Op::add, "new", "0,3"});
  (void)cluster.change(module::PropertyCommand{module::PropertyCommand::Op::remove, "fast", "3"});
  (void)cluster.change(module::ShrinkCommand{"3"});
  (void)cluster.change(module::UnshrinkCommand{"3"});
  const Cluster next(cluster.fold);
  (void)cluster.reload();
  for (const Cluster* each : {&std::as_const(cluster), &next}) {
    const auto& properties = each->module().inventory().properties();
    CHECK(properties.at("new") == IdSet{0});
    CHECK(properties.at("fast") == IdSet{2, 3});
  }
}

TEST_CASE("the host of several targets stands for those that were removed") {
  Cluster cluster;
  module::DefineCommand load;
  load.inventory = std::make_shared<const rset::ResourceSet>(rset::ResourceSet(
      {{IdSet::range(0, 3), IdSet::range(0, 1), {}}}, text::Hostlist::parse("n0,n0,n0,n1")));
  (void)cluster.step(load);
  (void)cluster.change(module::ShrinkCommand{"1-2"});
  CHECK(refusal(cluster, "n1") == EEXIST);
  CHECK(refusal(cluster, "0-1") == EEXIST);
  CHECK(refusal(cluster, "n0") == 0);
  CHECK(cluster.module().returning() == IdSet{1, 2});
}

TEST_CASE("an unshrink of targets that are here is refused, and one again changes nothing") {
  Cluster cluster;
  (void)cluster.change(module::ShrinkCommand{"3"});
  CHECK(refusal(cluster, "2-3") == EEXIST);
  CHECK(refusal(cluster, "9") == EINVAL);
  CHECK(refusal(cluster, "n3") == 0);
  CHECK(cluster.change(module::UnshrinkCommand{"3"}).records.empty());
}

TEST_CASE("an R that has a returning target ends its return") {
  Cluster cluster;
  (void)cluster.change(module::ShrinkCommand{"2-3"});
  (void)cluster.change(module::UnshrinkCommand{"2-3"});
  module::DefineCommand load;
  load.inventory = std::make_shared<const rset::ResourceSet>(
      rset::ResourceSet({{IdSet::range(0, 2), IdSet::range(0, 1), {}}}, text::Hostlist::parse("n[0-2]")));
  (void)cluster.step(std::move(load));
  CHECK(cluster.module().returning().empty());
  (void)cluster.reload();
  CHECK(cluster.ranks() == "0-2");
}

}  // namespace resourced::engine
