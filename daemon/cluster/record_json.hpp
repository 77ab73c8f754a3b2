// Records of the log as lines of JSON, for the log of a cluster in etcd. A record has all that the store
// writes for it, so that the store of each member gets the same rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/store/records.hpp"

namespace resourced::daemon::cluster {

/// One line, with its end.
[[nodiscard]] std::string encode_record(const store::Record& record);

/// The records of some lines, packed or not, which are numbered without a gap from `first` to `last`. Throws
/// Error EBADMSG that names the event for any other text.
[[nodiscard]] std::vector<store::Record> decode_records(std::string_view text, store::Sequence first,
                                                        store::Sequence last);

}  // namespace resourced::daemon::cluster
