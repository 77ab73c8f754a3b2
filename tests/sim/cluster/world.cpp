#include "world.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace resourced::sim {

void World::next() {
  if (events_.empty()) {
    now_ += Seconds(0.01);
    return;
  }
  Event event = std::move(events_.extract(events_.begin()).value());
  now_ = std::max(now_, event.at);
  if (event.place) {
    if (event.place->life.expired()) return;
    if (is_paused(event.place->node)) return pauses_[event.place->node].events.push_back(std::move(event));
  }
  event.work();
}

void World::pause(std::size_t node, SteadyTime until) {
  Pause& pause = pauses_[node];
  pause.until = std::max(pause.until, until);
  at(until, [this, node] {
    if (!is_paused(node)) resume(node);
  });
}

void World::resume(std::size_t node) {
  constexpr double longest_delay = 0.01;
  Pause& pause = pauses_[node];
  pause.until = std::min(pause.until, now_);
  for (Event& event : std::exchange(pause.events, {})) {
    event.at = now_;
    event.order = ++order_;
    if (event.place->is_timer && chance(0.5)) event.at += any(longest_delay);
    insert(std::move(event));
  }
}

void World::note(std::string action) {
  constexpr std::size_t most = 60;
  trace_.push_back(fmt::format("{:.4f} {}", to_number(now_), std::move(action)));
  if (trace_.size() > most) trace_.pop_front();
}

}  // namespace resourced::sim
