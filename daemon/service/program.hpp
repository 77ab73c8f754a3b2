// Interface of a Service to the program around it: clocks, the loop and the configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/module/actor.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"

namespace resourced::daemon::service {

class Program {
 public:
  /// The actor of a request, for the events that it causes.
  using By = std::optional<module::Actor>;

  Program() = default;
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;
  Program& operator=(Program&&) = delete;

  [[nodiscard]] virtual WallTime wall_now() const = 0;
  [[nodiscard]] virtual SteadyTime steady_now() const = 0;
  /// Runs a function on the loop after a time, unless the loop has ended by then. With a time of 0 it may be
  /// called from any thread.
  virtual void run_later(Seconds pause, std::function<void()> work) = 0;
  /// Calls Service::on_time() at that time. A later call of this function replaces an earlier one.
  virtual void wake_at(SteadyTime when) = 0;

  /// Reads the configuration again; throws Error if it is refused.
  virtual void reload(const By& by) = 0;
  /// Replaces the inventory by an R that was read from a file; throws Error if it is refused. With `force` it
  /// may have more ranks than the instance.
  virtual void load(const rset::ResourceSet& resources, const std::string& path, bool force,
                    const By& by) = 0;
  /// Called when the node agents have reported the inventory that Service::discover() asked for.
  virtual void on_discovered(const rset::ResourceSet& /*inventory*/) {}
  /// Called when a user of this machine connects, even one without a role.
  virtual void on_user(std::uint32_t /*uid*/) {}
};

}  // namespace resourced::daemon::service
