// A link over a Unix stream socket, as Flux's local connector speaks it (framing: proto/local_frame.hpp): the
// transport for users whom the ZeroMQ socket does not admit. The kernel tells the daemon who this client is,
// and the daemon bounds frames.
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
