// Payloads of resource.leader, which tells whether a daemon leads its cluster. The request has no payload.
// The leader answers `{"epoch": N, "cluster": ID}`, another member EHOSTUNREACH, and a daemon that is in no
// cluster `{}`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"

namespace resourced::proto::topics {

/// Number of a leader of a cluster: each leader has a higher one than those before it.
using Epoch = std::uint64_t;

/// The term of a leader. A cluster that is created again in an empty etcd has a new id, and counts from a low
/// epoch again: epochs of different clusters must not be compared.
struct Term {
  Epoch epoch = 0;
  /// Id of the cluster; empty from a daemon that reports none.
  std::string cluster = {};
};

/// Whether a client that was connected to a leader of `former` may connect to one of `next`. A deposed leader
/// may not know yet that another one leads.
[[nodiscard]] bool may_follow(const Term& former, const Term& next) noexcept;

/// Returns the refusal of a daemon that does not lead, with EHOSTUNREACH; `standing` names the leader.
[[nodiscard]] Error standby_refusal(const std::string& standing);
/// Whether an error is such a refusal.
[[nodiscard]] bool is_of_standby(const Error& error);
/// Returns the standing in such a refusal, or the text of another error.
[[nodiscard]] std::string standing_of(const Error& error);

[[nodiscard]] std::string encode_leader(const std::optional<Term>& term);
/// Returns the members `"epoch":N,"cluster":ID` of an object.
[[nodiscard]] std::string encode_term(const Term& term);
/// Reads a response. Throws Error EPROTO for an epoch that is no number, and for an id that is no string.
[[nodiscard]] std::optional<Term> parse_leader(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
