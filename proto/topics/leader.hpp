// resource.leader: which daemon of a cluster leads. The request has no payload. The daemon that leads answers
// `{"epoch": N, "cluster": ID}`, one that does not lead EHOSTUNREACH, and one that is in no cluster `{}`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"

namespace resourced::proto::topics {

/// Counts the leaders of a cluster: each has a higher one than those before it.
using Epoch = std::uint64_t;

/// A cluster that is begun anew in an empty etcd has a new id, and counts from a low epoch again: epochs of
/// different clusters must not be compared.
struct Term {
  Epoch epoch = 0;
  /// The id of the cluster. Empty from a daemon that tells none.
  std::string cluster = {};
};

/// Whether a client that has talked to a leader of `former` may talk to one of `next`. A former leader does
/// not know yet that another one leads.
[[nodiscard]] bool may_follow(const Term& former, const Term& next) noexcept;

/// The refusal of a daemon that does not lead, with EHOSTUNREACH; `standing` names the leader.
[[nodiscard]] Error standby_refusal(const std::string& standing);
/// Whether an error is such a refusal.
[[nodiscard]] bool is_of_standby(const Error& error);

[[nodiscard]] std::string encode_leader(const std::optional<Term>& term);
/// The members `"epoch":N,"cluster":ID` of an object.
[[nodiscard]] std::string encode_term(const Term& term);
/// Throws Error EPROTO for an epoch that is no number, and for an id that is no string.
[[nodiscard]] std::optional<Term> parse_leader(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
