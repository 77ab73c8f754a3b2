// resource.reload: the configuration, or with a path another R in the place of the present one.
#pragma once

#include <functional>
#include <string>

#include "core/rset/resource_set.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/gate.hpp"
#include "daemon/service/inventory_file.hpp"
#include "daemon/service/requests.hpp"

namespace resourced::daemon::service {

class ReloadTopics {
 public:
  /// Reads the configuration again; throws Error if it is refused.
  using Reload = std::function<void()>;
  /// Puts an R that was read from a file in the place of the inventory; throws Error if it is refused. With
  /// `force` it may have more ranks than the instance.
  using Load = std::function<void(rset::ResourceSet resources, const std::string& path, bool force)>;

  ReloadTopics(const Executor& executor, Requests& requests, Gate& gate, Reload reload, Load load,
               InventoryFile::Post post);

  void reload(const Call& call);
  /// The file that is being read is not waited for any longer.
  void release() noexcept { file_.drop(); }

 private:
  /// Throws Error if no other R can be loaded now.
  void check_loadable() const;
  void on_file(proto::RequestKey key, const std::string& path, bool force, InventoryFile::Result result);

  const Executor& executor_;
  Requests& requests_;
  Gate& gate_;
  Reload reload_;
  Load load_;
  InventoryFile file_;
};

}  // namespace resourced::daemon::service
