// A link over a Unix stream socket, as Flux's local connector speaks it (framing: proto/local_frame.hpp): the
// transport for everybody but the daemon's own user. The kernel says who this client is, and frames are
// bounded at the other end.
#pragma once

#include <memory>
#include <string>

#include "client/link_impl.hpp"

namespace resourced::client {

/// Starts to connect to a `local://PATH`. Throws Error if there are no descriptors left; an address that
/// cannot be reached is an event of the link.
[[nodiscard]] std::unique_ptr<Link::Impl> make_local_link(const std::string& uri,
                                                          const ConnectionOptions& options, Wakeup& wakeup);

}  // namespace resourced::client
