// Records of the log as lines of JSON, for the log of a cluster in etcd. A record has all that the store
// writes for it, so that the store of each member gets the same rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/log/records.hpp"

namespace resourced::daemon::log::etcd {

/// Encodes a record as one line, with its newline.
[[nodiscard]] std::string encode_record(const log::Record& record);

/// Decodes the records of some lines, packed or not, which are numbered without a gap from `first` to `last`.
/// Throws Error EBADMSG that names the event for any other text.
[[nodiscard]] std::vector<log::Record> decode_records(std::string_view text, log::Sequence first,
                                                      log::Sequence last);

}  // namespace resourced::daemon::log::etcd
