#include "sim_runtime.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace resourced::sim {
namespace {

constexpr Seconds timeout{0.75};
constexpr double usual = 0.02;
constexpr double slow = 4;

}  // namespace

void Network::send(std::size_t node, const World::Life& life, cluster::Request request,
                   daemon::log::etcd::Runtime::Handler handler) {
  const auto is_answered = std::make_shared<bool>(false);
  const auto give = [is_answered, handler = std::move(handler)](const cluster::Outcome& outcome) {
    if (!std::exchange(*is_answered, true)) handler(outcome);
  };
  world_.at(world_.now() + timeout, {node, life}, [give] { give(cluster::Unknown{"no answer"}); });
  const auto is_bad = [this](double probability) { return !world_.is_calm() && world_.chance(probability); };
  if (is_bad(0.04)) return;
  const Seconds there = world_.any(is_bad(0.05) ? slow : usual);
  const Seconds back = world_.any(is_bad(0.05) ? slow : usual);
  const bool is_lost = is_bad(0.04);
  world_.after(there,
               [this, node, back, is_lost, give, life = std::weak_ptr(life), request = std::move(request)] {
                 // The request arrives even if its sender has died in the meantime.
                 if (is_cut(node)) return;
                 const cluster::Outcome outcome = etcd_.carry_out(request, world_.now());
                 if (is_lost) return;
                 world_.at(world_.now() + back, {node, life}, [this, node, give, outcome] {
                   if (!is_cut(node)) give(outcome);
                 });
               });
}

void SimRuntime::send(cluster::Request request, Handler handler) {
  network_.send(node_, life_, std::move(request), [this, handler = std::move(handler)](auto outcome) {
    const auto* unknown = std::get_if<cluster::Unknown>(&outcome);
    trouble_ = unknown != nullptr ? unknown->why : "";
    // Copied, as the work may destroy this object.
    const auto run = run_;
    run([&] { handler(std::move(outcome)); });
  });
}

void SimRuntime::post(std::function<void()> work) {
  world_.at(world_.now(), {node_, life_}, [run = run_, work = std::move(work)] { run(work); });
}

void SimRuntime::run_at(BootTime when, std::function<void()> work) {
  timer_ = World::new_life();
  world_.at(std::max(world_.now(), clock_.when(when)), {node_, timer_, true},
            [run = run_, work = std::move(work)] { run(work); });
}

}  // namespace resourced::sim
