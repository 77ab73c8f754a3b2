// A daemon for tests of drains that begin and end by themselves.
#pragma once

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/engine/engine.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "fold.hpp"

namespace resourced::engine {

inline constexpr text::IdSet::Id last_rank = 7;
inline const module::Actor operator_of_the_day = module::ByUser{1000};

/// A daemon on hosts n0 to n7 or more, and the state that its log has.
struct Site {
  Engine engine;
  Fold fold;
  double last_tick = 0;

  explicit Site(double now = 20, Fold recorded = {}, std::string_view exclude = "",
                text::IdSet::Id last = last_rank)
      : fold(std::move(recorded)) {
    Start input;
    input.command.inventory = std::make_shared<const rset::ResourceSet>(
        rset::ResourceSet({{text::IdSet::range(0, last), text::IdSet{0}, {}}},
                          text::Hostlist::parse(fmt::format("n[0-{}]", last))));
    input.command.online = input.command.inventory->ranks();
    input.state = fold.state;
    input.command.exclude = text::IdSet::parse(exclude);
    (void)step(input, now);
  }
  Effects step(const Input& input, double now) {
    Effects effects = engine.step(input, {wall_time(now), steady_time(now)}, operator_of_the_day);
    for (const Record& record : effects.records) fold.apply(record);
    return effects;
  }
  Effects drain(std::string_view targets, double now, std::optional<double> from, std::optional<double> until,
                module::DrainMode mode = module::DrainMode::none) {
    module::DrainCommand command{{"power"}, std::string(targets), mode};
    if (from) command.from = wall_time(*from);
    if (until) command.until = wall_time(*until);
    return step(module::Command(command), now);
  }
  Effects undrain(std::string_view targets, double now) {
    return step(module::Command(module::UndrainCommand{std::string(targets), {}, {}}), now);
  }
  /// Appends an event that does not affect drains.
  void touch(double now) { (void)step(module::Command(module::ExpirationCommand{wall_time(now + 1)}), now); }
  /// Takes all steps that are due at this time.
  std::vector<Record> tick(double now) {
    std::vector<Record> records;
    last_tick = now;
    while (next() && *next() <= now) {
      Effects effects = step(Tick{}, now);
      std::move(effects.records.begin(), effects.records.end(), std::back_inserter(records));
    }
    return records;
  }
  [[nodiscard]] std::string drained() const { return engine.module().drains().ranks().encode(); }
  [[nodiscard]] std::string scheduled() const { return engine.module().scheduled_drains().ranks().encode(); }
  [[nodiscard]] std::optional<double> next() const {
    const auto due = engine.next_due(wall_time(last_tick));
    return due ? std::optional(to_number(*due)) : std::nullopt;
  }
};

}  // namespace resourced::engine
