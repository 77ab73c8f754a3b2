// The topic resource.reload: reads the configuration again, or with a path replaces the present R by another.
#pragma once

#include <functional>
#include <string>

#include "core/rset/resource_set.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/inventory_file.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/topics.hpp"

namespace resourced::daemon::service {

class ReloadTopics {
 public:
  /// The actor of the request, for the events that it causes.
  using By = std::optional<module::Actor>;
  /// Reads the configuration again; throws Error if it is refused.
  using Reload = std::function<void(const By&)>;
  /// Replaces the inventory by an R that was read from a file; throws Error if it is refused. With `force` it
  /// may have more ranks than the instance.
  using Load =
      std::function<void(rset::ResourceSet resources, const std::string& path, bool force, const By& by)>;

  /// `topologies` as Service::Settings::read_topologies.
  ReloadTopics(const Executor& executor, Requests& requests, Gate& gate, Reload reload, Load load,
               InventoryFile::Read topologies, InventoryFile::Post post);

  void reload(const Call& call);
  /// The request has ended: drops the file that is being read.
  void release() noexcept { file_.drop(); }

 private:
  /// Throws Error if no other R can be loaded now.
  void check_loadable() const;
  struct Wanted {
    std::string path;
    bool force = false;
    By by;
  };
  void on_file(proto::RequestKey key, const Wanted& wanted, InventoryFile::Result result);

  const Executor& executor_;
  Requests& requests_;
  Gate& gate_;
  Reload reload_;
  Load load_;
  InventoryFile::Read topologies_;
  InventoryFile file_;
};

}  // namespace resourced::daemon::service
