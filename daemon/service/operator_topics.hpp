// The topics by which operators change the state of targets: each request is one command to the engine.
#pragma once

#include "core/engine/engine.hpp"
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

 private:
  void execute(const Call& call, const engine::Input& input);

  Executor& executor_;
  Requests& requests_;
};

}  // namespace resourced::daemon::service
