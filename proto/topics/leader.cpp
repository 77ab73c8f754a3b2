#include "proto/topics/leader.hpp"

#include <cerrno>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "proto/json_text.hpp"

namespace resourced::proto::topics {
namespace {

constexpr std::string_view does_not_lead = "this daemon does not lead its cluster: ";

}  // namespace

Error standby_refusal(const std::string& standing) {
  return {EHOSTUNREACH, std::string(does_not_lead) + standing};
}

bool is_of_standby(const Error& error) {
  return error.errnum() == EHOSTUNREACH && std::string_view(error.what()).starts_with(does_not_lead);
}

std::string standing_of(const Error& error) {
  const std::string_view text = error.what();
  return std::string(is_of_standby(error) ? text.substr(does_not_lead.size()) : text);
}

bool may_follow(const Term& former, const Term& next) noexcept {
  const bool are_same = former.cluster.empty() || next.cluster.empty() || former.cluster == next.cluster;
  return !are_same || next.epoch >= former.epoch;
}

std::string encode_term(const Term& term) {
  std::string out = fmt::format(R"("epoch":{})", term.epoch);
  append_member(out, "cluster", term.cluster);
  return out;
}

std::string encode_leader(const std::optional<Term>& term) {
  return term ? '{' + encode_term(*term) + '}' : "{}";
}

std::optional<Term> parse_leader(const nlohmann::json& payload) {
  const auto found = payload.find("epoch");
  if (found == payload.end()) return std::nullopt;
  if (!found->is_number_unsigned()) throw Error(EPROTO, "epoch: not a number from 0 on");
  return Term{found->get<Epoch>(), optional_string(payload, "cluster").value_or("")};
}

}  // namespace resourced::proto::topics
