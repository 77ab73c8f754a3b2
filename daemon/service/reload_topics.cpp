#include "daemon/service/reload_topics.hpp"

#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "proto/message.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::service {

void ReloadTopics::reload(const Call& call) {
  const proto::topics::ReloadRequest wanted = proto::topics::parse_reload(call.optional_object());
  if (!wanted.path) {
    program_.reload(call.actor());
    const module::Module& module = executor_.module();
    const std::string partitions = proto::topics::encode_partitions(
        module.state(), executor_.engine().acquisition(), module.acquirable());
    // RFC 28 has no response that tells schedulers which targets they will get or lose.
    if (partitions.empty()) return requests_.respond(call);
    return requests_.respond(call, proto::make_payload(proto::topics::encode_reloaded(partitions)));
  }
  gate_.check_right(call.sender, call.request, peers::Right::own);
  check_loadable();
  if (wanted.xml && !topologies_) {
    throw Error(EINVAL,
                fmt::format("{}: this daemon loads only R; convert the file with resourcectl R encode --xml",
                            *wanted.path));
  }
  if (file_.busy()) throw Error(EBUSY, "another R is being loaded");
  requests_.keep(call, [&](proto::RequestKey key) {
    const auto done = [this, key, load = Wanted{*wanted.path, wanted.force, call.actor()}](
                          const auto& result) { on_file(key, load, result); };
    if (wanted.xml) {
      file_.read(*wanted.path, done, topologies_);
    } else {
      file_.read(*wanted.path, done);
    }
    requests_.become(key, streams::InventoryLoad{});
  });
}

void ReloadTopics::check_loadable() const {
  executor_.engine().require_targets();
  if (executor_.engine().nodes().enclosed()) {
    throw Error(EINVAL, "the enclosing instance assigns the resources of this one");
  }
  if (executor_.engine().acquisition().holders() > 0) {
    throw Error(EBUSY, "resources are busy (unload scheduler?)");
  }
}

void ReloadTopics::on_file(proto::RequestKey key, const Wanted& wanted, const InventoryFile::Result& result) {
  try {
    if (const auto* error = std::get_if<Error>(&result)) throw Error(*error);
    // Check again, as a scheduler may have acquired while the file was read.
    check_loadable();
    program_.load(std::get<rset::ResourceSet>(result), wanted.path, wanted.force, wanted.by);
    requests_.finish(key);
  } catch (const Error& error) {
    requests_.fail(key, error);
  }
}

}  // namespace resourced::daemon::service
