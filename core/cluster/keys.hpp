// The keys of a cluster below its prefix in etcd, and readers of their values.
//
// `id` names the cluster; `leader` has `{"name", "uri", "process"}`; `head` the last sequence; `log/SEQUENCE`
// the batch that ends with this event, a header line `{"first", "epoch", "parts", "format"}` and its text.
// The text of a large batch is in `part/SEQUENCE/EPOCH/INDEX`, put before the transaction that moves `head`.
// `ahead` has `{"name", "applied"}` of a member whose store has more events than the log, which was restored
// from an older backup: while it is there, no member leads.
// `snapshot` and `snapshot/...` are in snapshots.hpp. `members/NAME` has
// `{"uri", "applied", "version", "process", "files"}` of each connected member (files.hpp). `successor` has
// the name of the member to which the last leader has handed over, until a member leads. `holders` has a text
// of the leader for its successor. Numbers in keys have 20 digits, so that keys are in the order of the
// numbers.
//
// Standbys watch the keys from `head` to `leader`: values of keys between them are sent to each standby.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include "core/cluster/requests.hpp"
#include "core/error.hpp"

namespace resourced::cluster {

/// Numbers events from 1, as engine::Sequence.
using Sequence = std::uint64_t;

/// The format of the batches that this version writes and reads. Versions before 0.1.0 wrote format 1, with
/// or without the number. CONTRIBUTING.md says when to raise it.
inline constexpr std::uint64_t log_format = 2;

inline constexpr std::string_view id_key = "id";
inline constexpr std::string_view leader_key = "leader";
inline constexpr std::string_view head_key = "head";
inline constexpr std::string_view successor_key = "successor";
inline constexpr std::string_view snapshot_key = "snapshot";
inline constexpr std::string_view log_folder = "log";
inline constexpr std::string_view holders_key = "holders";
inline constexpr std::string_view ahead_key = "ahead";
inline constexpr std::string_view members_folder = "members";

/// The key that follows all keys of a folder.
[[nodiscard]] std::string end_of(std::string_view folder);
[[nodiscard]] std::string log_key(Sequence sequence);
/// The parts of a batch are in it, whatever their epoch.
[[nodiscard]] std::string part_folder(Sequence sequence);
[[nodiscard]] std::string part_key(Sequence sequence, Revision epoch, std::size_t index);
[[nodiscard]] std::string member_key(const std::string& name);

/// A value in etcd that no member has written.
class Garbled : public Error {
 public:
  explicit Garbled(const std::string& key) : Error(EBADMSG, fmt::format("{} in etcd is not readable", key)) {}
};

/// Each throws Garbled with the key.
[[nodiscard]] nlohmann::json object_of(const std::string& key, std::string_view text);
[[nodiscard]] std::uint64_t number_of(const std::string& key, const nlohmann::json& object, const char* name);
[[nodiscard]] std::string text_of(const std::string& key, const nlohmann::json& object, const char* name);
[[nodiscard]] Sequence sequence_of(const KeyValue& head);

/// An entry of the log without its text.
struct EntryHeader {
  Sequence first = 0;
  Sequence last = 0;
  Revision epoch = 0;
  std::size_t parts = 0;
  /// Where its text begins.
  std::size_t text = 0;
};
/// The last event of an entry of the log, by its key. Throws Garbled.
[[nodiscard]] Sequence last_in_entry(const std::string& log_key);
/// Throws Garbled, and Error EPROTONOSUPPORT for a format that this version does not read.
[[nodiscard]] EntryHeader entry_header(const KeyValue& entry);
/// Throws Error EPROTONOSUPPORT for the log or a snapshot of a version before 0.1.0.
[[noreturn]] void refuse_older(std::string_view what);
/// Throws Error EBADMSG unless so many Reads of a transaction have been answered.
void check_found(const TransactionDone& done, std::size_t reads);

}  // namespace resourced::cluster
