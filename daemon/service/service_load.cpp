// resource.reload: the configuration, or with a path another R in the place of the present one.
#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/service/service.hpp"
#include "proto/rpc.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::daemon::service {

using proto::Message;

void Service::reload(proto::ClientId client, const Message& request) {
  const proto::ReloadRequest wanted = proto::parse_reload(proto::parse_optional_object(request));
  if (!wanted.path) {
    reload_();
    return respond(client, request);
  }
  check_right(client, request, peers::Right::own);
  check_loadable();
  if (wanted.xml) {
    throw Error(EINVAL, fmt::format("{}: this daemon loads an R; resourcectl R encode --xml makes one of it",
                                    *wanted.path));
  }
  if (inventory_file_.busy()) throw Error(EBUSY, "another R is being loaded");
  const proto::RequestKey key = requests_.add(client, request);
  try {
    inventory_file_.read(*wanted.path, [this, key, path = *wanted.path, force = wanted.force](auto result) {
      on_inventory_file(key, path, force, std::move(result));
    });
  } catch (const Error&) {
    requests_.take(key);
    throw;
  }
  loading_ = key;
}

void Service::check_loadable() const {
  if (!executor_.module().defined()) throw Error(EAGAIN, "the inventory is not known yet");
  if (presence_) {
    throw Error(EINVAL, "the resources of this instance are those that the enclosing one gave it");
  }
  if (engine().acquisition().holders() > 0) throw Error(EBUSY, "resources are busy (unload scheduler?)");
}

void Service::on_inventory_file(proto::RequestKey key, const std::string& path, bool force,
                                std::variant<ResourceSet, Error> result) {
  const transport::LoopHold hold(&holds_, "resource.reload");
  loading_.reset();
  try {
    if (const auto* error = std::get_if<Error>(&result)) throw Error(*error);
    // A scheduler may have acquired while the file was read.
    check_loadable();
    load_(std::get<ResourceSet>(std::move(result)), path, force);
    if (agents_) {
      for (const proto::RequestKey request : agents_->begin_again(uptime_())) {
        end_stream(request, Error(EAGAIN, "another R was loaded: say hello again"));
      }
    }
    if (const auto request = requests_.take(key)) respond(key.client, *request);
  } catch (const Error& error) {
    if (const auto request = requests_.take(key)) refuse(key.client, *request, error);
  }
  flush();
  schedule();
}

}  // namespace resourced::daemon::service
