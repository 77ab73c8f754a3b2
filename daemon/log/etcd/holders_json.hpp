// The holders of resources as a leader keeps them in etcd for its successor:
// `{"holders": [{"partition": NAME, "by": ACTOR}, ...]}`, where the name is empty for the targets in no
// partition, and ACTOR is as in proto/actor_json.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/module/reservations.hpp"

namespace resourced::daemon::log::etcd {

[[nodiscard]] std::string encode_holders(const std::vector<module::PartitionHolder>& holders);
/// Decodes holders. Throws Error EBADMSG for any other text.
[[nodiscard]] std::vector<module::PartitionHolder> decode_holders(std::string_view text);

}  // namespace resourced::daemon::log::etcd
