// Payloads of changes by operators: resource.drain, resource.undrain, resource.drain-cancel,
// resource.property, resource.expiration (also as resource.expiration-update), resource.shrink,
// resource.unshrink, resource.forget and resource.reload. Each takes one object. The answers have no payload,
// except that of a resource.reload (encode_reloaded() in proto/topics/status.hpp). Drain, undrain and reload
// are as Flux's command line sends them; the others are this project's own.
//
// TARGETS is an idset (RFC 22) or a hostlist (RFC 29). Each parse function throws Error EPROTO that names a
// key which is missing or has the wrong type, and EINVAL for a value that is not allowed; it ignores unknown
// keys. core/module/module.cpp checks whether the targets exist.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/module/command.hpp"

namespace resourced::proto::topics {

/// resource.drain: `{"targets": TARGETS, "reason": STRING?, "mode": MODE?, "from": T?, "if-reason": STRING?}`
/// and the other terms of the drain (proto/drain_json.hpp), where MODE is `update`, `overwrite` or
/// `force-overwrite`. An empty reason means none; an if-reason that is null means that no target may be
/// drained. `from`, the time at which the drain begins by itself, and the other terms are this project's own.
/// EINVAL `invalid drain mode 'X' specified`.
[[nodiscard]] nlohmann::json encode_drain(const module::DrainCommand& command);
[[nodiscard]] module::DrainCommand parse_drain(const nlohmann::json& payload);

/// resource.undrain: the first three keys of resource.drain, `"if-reason"`, and `"keeps-scheduled": BOOL?`.
/// EINVAL `invalid undrain mode 'X' specified`, a text that Flux fixes.
[[nodiscard]] nlohmann::json encode_undrain(const module::UndrainCommand& command);
[[nodiscard]] module::UndrainCommand parse_undrain(const nlohmann::json& payload);

/// resource.drain-cancel: `{"targets": TARGETS, "from": T?}`.
[[nodiscard]] nlohmann::json encode_drain_cancel(const module::CancelCommand& command);
[[nodiscard]] module::CancelCommand parse_drain_cancel(const nlohmann::json& payload);

/// resource.property: `{"op": "add" | "remove", "name": STRING, "targets": TARGETS}`. EINVAL `unknown op: X`.
[[nodiscard]] nlohmann::json encode_property(const module::PropertyCommand& command);
[[nodiscard]] module::PropertyCommand parse_property(const nlohmann::json& payload);

/// resource.expiration: `{"expiration": NUMBER}`, seconds since the epoch, or 0 for none.
[[nodiscard]] nlohmann::json encode_expiration(const module::ExpirationCommand& command);
[[nodiscard]] module::ExpirationCommand parse_expiration(const nlohmann::json& payload);

/// resource.shrink: `{"targets": TARGETS}`.
[[nodiscard]] nlohmann::json encode_shrink(const module::ShrinkCommand& command);
[[nodiscard]] module::ShrinkCommand parse_shrink(const nlohmann::json& payload);

/// resource.unshrink: `{"targets": TARGETS}`.
[[nodiscard]] nlohmann::json encode_unshrink(const module::UnshrinkCommand& command);
[[nodiscard]] module::UnshrinkCommand parse_unshrink(const nlohmann::json& payload);

/// resource.forget: `{"hosts": HOSTLIST}`.
[[nodiscard]] nlohmann::json encode_forget(const module::ForgetCommand& command);
[[nodiscard]] module::ForgetCommand parse_forget(const nlohmann::json& payload);

/// resource.reload: `{}` for the configuration, or `{"path": FILE, "force": BOOL?, "xml": BOOL?}` for an R
/// (RFC 20) in a file of the daemon's host. A path that is null means none.
struct ReloadRequest {
  std::optional<std::string> path;
  /// Whether the R may have more ranks than the instance.
  bool force = false;
  /// Whether the file is XML of hwloc.
  bool xml = false;
};
[[nodiscard]] nlohmann::json encode_reload(const ReloadRequest& request);
[[nodiscard]] ReloadRequest parse_reload(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
