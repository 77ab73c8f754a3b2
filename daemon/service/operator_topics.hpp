// The topics by which operators change the state of targets: each request is one command to the engine.
#pragma once

#include "core/module/command.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"

namespace resourced::daemon::service {

class OperatorTopics {
 public:
  OperatorTopics(Executor& executor, Requests& requests) : executor_(executor), requests_(requests) {}

  void drain(const Call& call);
  void undrain(const Call& call);
  void property(const Call& call);
  void expiration(const Call& call);
  void shrink(const Call& call);

  /// When a client last changed the expiration of this instance, in seconds since the Unix epoch; 0 if none
  /// has.
  [[nodiscard]] double expiration_set() const noexcept { return expiration_set_; }

 private:
  void execute(const Call& call, const Command& command);

  Executor& executor_;
  Requests& requests_;
  double expiration_set_ = 0;
};

}  // namespace resourced::daemon::service
