// What a scheduler knows of its resources, kept up to date by the responses of resource.acquire. Each
// response is checked as a whole before any of it is applied, so an error leaves the picture as it was.
#pragma once

#include "core/module/delta.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::client {

/// The view of a scheduler: its inventory and the available targets in it.
using Picture = proto::Acquired;

/// Makes the changes of a later response, whose `down` has the targets that left for good too. Throws Error
/// EPROTO, with nothing changed, if the update names targets that are not there.
void apply_update(Picture& picture, const Delta& update);

}  // namespace resourced::client
