// The imported log of a daemon gives the state of that daemon: random commands, and restarts that
// renumber the hosts.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "imported_present.hpp"
#include "proto/event_json.hpp"
#include "thorough.hpp"

namespace resourced::daemon::log {

using module::PropertyCommand;
using module::RecordedDrain;
using module::State;
using module::TargetName;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

/// An instance with random commands and restarts, each of which renumbers the hosts or omits some.
class RandomInstance {
 public:
  explicit RandomInstance(unsigned seed) : random_(seed) { restart(); }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      try {
        step();
      } catch (const Error&) {
        // Refused: no event.
      }
    }
  }

  [[nodiscard]] const std::string& log() const { return log_; }
  [[nodiscard]] const State& state() const { return engine_.module().state(); }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  void restart() {
    // All targets of a host are present or none, so that the ones that left are known.
    std::vector<std::string> hosts;
    for (const auto& [host, count] :
         std::map<std::string, std::size_t>{{"a", 3}, {"b", 2}, {"c", 1}, {"d", 1}})
      if (below(4) != 0) hosts.insert(hosts.end(), count, host);
    if (hosts.empty()) hosts.emplace_back("c");
    std::ranges::shuffle(hosts, random_);
    const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(hosts.size() - 1));
    Hostlist nodelist;
    for (const std::string& host : hosts) nodelist.append(host);
    module::StartCommand start;
    start.inventory = std::make_shared<const ResourceSet>(
        std::vector<rset::ResourceGroup>{{ranks, IdSet{0}, {}}}, std::move(nodelist));
    start.online = ranks;
    State before = state();
    engine_ = engine::Engine(engine_.applied(), engine_.applied_at());
    take(engine::Start{std::move(start), std::move(before), {}});
  }

  void step() {
    if (below(8) == 0) return restart();
    IdSet some{below(7)};
    some.insert(below(7));
    const std::string targets = some.encode();
    const auto mode = static_cast<module::DrainMode>(below(4));
    const std::string name = below(2) == 0 ? "p" : "q";
    switch (below(10)) {
      case 0:
        return take(module::ShrinkCommand{IdSet{below(7)}.encode()});
      case 1:
        return take(module::ExpirationCommand{wall_time(5000 + below(3))});
      case 2:
        return take(PropertyCommand{PropertyCommand::Op::remove, name, targets});
      case 3:
      case 4:
        return take(PropertyCommand{PropertyCommand::Op::add, name, targets});
      case 5:
        return take(module::UndrainCommand{targets, std::nullopt, mode});
      case 6:
        return take(module::MonitorCommand{some, {}, {}, {}});
      case 7:
        return take(module::ForgetCommand{std::string(1, "abcd"[below(4)])});
      default:
        return take(
            module::DrainCommand{{below(3) == 0 ? std::nullopt : std::optional("r" + name)}, targets, mode});
    }
  }

  void take(const engine::Input& input) {
    for (const engine::Record& record : engine_.step(input, {wall_time(++now_), {}}).records) {
      log_ += proto::encode_event(record.event) + "\n";
    }
  }

  std::mt19937 random_;
  double now_ = 0;
  engine::Engine engine_;
  std::string log_;
};

TEST_CASE("an import of a daemon's log has the state of that daemon, however its ranks were numbered") {
  const auto text_of_state = [](const State& known) {
    const module::AbsentStates state = known.by_name();
    std::set<std::string> lines;
    for (const RecordedDrain& drain : state.drains) {
      lines.insert(fmt::format("drain {} {} {}", text_of(drain.target), to_number(drain.timestamp),
                               drain.reason.value_or("-")));
    }
    // This configuration has no properties, so records of removed ones have no effect, nor do those of
    // targets that left.
    for (const module::RecordedProperty& property : state.properties) {
      const bool is_gone = std::ranges::find(state.shrunk, property.target) != state.shrunk.end();
      if (property.present && !is_gone)
        lines.insert(fmt::format("property {} {}", property.name, text_of(property.target)));
    }
    for (const TargetName& target : state.shrunk) lines.insert("shrunk " + text_of(target));
    if (known.expiration) lines.insert(fmt::format("expiration {}", to_number(known.expiration->value)));
    return lines;
  };
  for (unsigned seed = 1; seed <= resourced::test::thorough(100U, 25U); ++seed) {
    RandomInstance instance(seed);
    instance.run(30);
    CAPTURE(seed);
    CAPTURE(instance.log());
    CHECK(text_of_state(Present(instance.log()).state) == text_of_state(instance.state()));
  }
}

}  // namespace
}  // namespace resourced::daemon::log
