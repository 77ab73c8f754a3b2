// The topic resource.reload: reads the configuration again, or with a path replaces the present R by another.
#pragma once

#include <string>
#include <utility>

#include "core/rset/resource_set.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/inventory_file.hpp"
#include "daemon/service/program.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/topics.hpp"

namespace resourced::daemon::service {

class ReloadTopics {
 public:
  /// `topologies` is Service::Settings::read_topologies.
  ReloadTopics(const Executor& executor, Requests& requests, Gate& gate, Program& program,
               InventoryFile::Read topologies, Deferral& deferral)
      : executor_(executor),
        requests_(requests),
        gate_(gate),
        program_(program),
        topologies_(std::move(topologies)),
        file_(deferral) {}

  void reload(const Call& call);
  /// Called when the request has ended: drops the file that is being read.
  void release() noexcept { file_.drop(); }

 private:
  /// Throws Error if no other R can be loaded now.
  void check_loadable() const;
  struct Wanted {
    std::string path;
    bool force = false;
    Program::By by;
  };
  void on_file(proto::RequestKey key, const Wanted& wanted, const InventoryFile::Result& result);

  const Executor& executor_;
  Requests& requests_;
  Gate& gate_;
  Program& program_;
  InventoryFile::Read topologies_;
  InventoryFile file_;
};

}  // namespace resourced::daemon::service
