// The time of a simulated cluster, and its random numbers. Everything is an event in a queue, which has a
// time and may belong to a node. A node that is paused (SIGSTOP) handles its events later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/time.hpp"

namespace resourced::sim {

class World {
 public:
  using Work = std::function<void()>;
  /// Owned by a process, or by an object in it, for its lifetime.
  using Life = std::shared_ptr<const int>;
  static Life new_life() { return std::make_shared<const int>(0); }

  /// The place of an event: a node, during a life.
  struct Place {
    std::size_t node = 0;
    std::weak_ptr<const int> life;
    /// Whether the event is a timer: a node that was paused may handle it after later events.
    bool is_timer = false;
  };

  World(std::uint32_t seed, std::size_t nodes) : random_(seed), pauses_(nodes) {}

  [[nodiscard]] SteadyTime now() const noexcept { return now_; }
  void at(SteadyTime when, Work work) { insert({when, ++order_, std::nullopt, std::move(work)}); }
  void at(SteadyTime when, Place place, Work work) {
    insert({when, ++order_, std::move(place), std::move(work)});
  }
  void after(Seconds pause, Work work) { at(now_ + pause, std::move(work)); }
  /// Handles the next event, or lets some time pass if there is none.
  void next();

  void pause(std::size_t node, SteadyTime until);
  void resume(std::size_t node);
  [[nodiscard]] bool is_paused(std::size_t node) const { return pauses_[node].until > now_; }

  /// Ends all faults.
  void calm_down() noexcept { is_calm_ = true; }
  [[nodiscard]] bool is_calm() const noexcept { return is_calm_; }

  [[nodiscard]] std::size_t below(std::size_t limit) { return random_() % limit; }
  [[nodiscard]] bool chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }
  [[nodiscard]] Seconds any(double most) {
    return Seconds(std::uniform_real_distribution<double>(0, most)(random_));
  }

  /// Adds a line about what happens, for the report of a violation.
  void note(std::string action);
  [[nodiscard]] const std::deque<std::string>& trace() const noexcept { return trace_; }

 private:
  struct Event {
    SteadyTime at{};
    std::uint64_t order = 0;
    std::optional<Place> place;
    Work work;
    friend bool operator<(const Event& a, const Event& b) {
      return a.at != b.at ? a.at < b.at : a.order < b.order;
    }
  };
  struct Pause {
    SteadyTime until{};
    /// Events during the pause, in order.
    std::vector<Event> events;
  };
  void insert(Event event) { events_.insert(std::move(event)); }

  std::mt19937_64 random_;
  SteadyTime now_{};
  std::set<Event> events_;
  std::uint64_t order_ = 0;
  std::vector<Pause> pauses_;
  bool is_calm_ = false;
  std::deque<std::string> trace_;
};

}  // namespace resourced::sim
