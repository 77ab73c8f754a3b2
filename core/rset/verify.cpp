#include "core/rset/verify.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/group_table.hpp"
#include "core/rset/id_collector.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/short_form.hpp"
#include "core/text/quote.hpp"

namespace resourced::rset {

using text::IdSet;

namespace {

bool reports_missing(VerifyMode mode) {
  return mode == VerifyMode::strict || mode == VerifyMode::allow_extra;
}

bool reports_extra(VerifyMode mode) {
  return mode == VerifyMode::strict || mode == VerifyMode::allow_missing;
}

/// Resources that only one of two sets has, collected pair by pair.
class Difference {
 public:
  Difference(bool cores, bool gpus) : cores_(cores), gpus_(gpus) {}

  void add(const IdSet& ranks, const ResourceGroup& has, const ResourceGroup* lacks) {
    IdSet cores = cores_ ? has.cores : IdSet();
    IdSet gpus = gpus_ ? has.gpus : IdSet();
    if (lacks != nullptr) {
      cores -= lacks->cores;
      gpus -= lacks->gpus;
    }
    if (cores.empty() && gpus.empty()) return;
    table_.add(ranks, table_.children(cores, gpus, nullptr), 0);
    ranks_.add(ranks);
  }

  [[nodiscard]] IdSet take_ranks() { return ranks_.take(); }

  [[nodiscard]] std::string text(bool with_ranks) {
    const std::vector<ResourceGroup> groups =
        table_.finish(GroupTable::Repeats::allowed, [](const GroupTable::Conflict& conflict) {
          return Error(EINVAL, fmt::format("rank {} {}", conflict.rank, conflict.text));
        });
    if (groups.empty()) return {};
    return with_ranks ? short_form(groups) : short_form(groups.front().cores, groups.front().gpus);
  }

 private:
  bool cores_;
  bool gpus_;
  GroupTable table_;
  IdCollector ranks_;
};

std::string host_mismatch(const ResourceSet& expected, const ResourceSet& found) {
  const IdSet ranks = expected.ranks() & found.ranks();
  const text::Hostlist wanted = expected.hosts(ranks);
  const text::Hostlist seen = found.hosts(ranks);
  if (wanted == seen) return {};
  std::string text;
  std::size_t others = 0;
  std::size_t position = 0;
  ranks.for_each([&](IdSet::Id rank) {
    std::string host = seen.at(position);
    std::string name = wanted.at(position);
    ++position;
    if (host == name) return;
    if (text.empty()) {
      text = fmt::format("hostname mismatch: rank {} is {}, expected {}", rank, host, name);
    } else {
      ++others;
    }
  });
  if (others > 0) text += fmt::format(" (and {} more)", others);
  return text;
}

}  // namespace

VerifyMode parse_verify_mode(std::string_view text) {
  if (text == "strict") return VerifyMode::strict;
  if (text == "allow-extra") return VerifyMode::allow_extra;
  if (text == "allow-missing") return VerifyMode::allow_missing;
  if (text == "ignore") return VerifyMode::ignore;
  throw Error(EINVAL,
              fmt::format("{} is none of strict, allow-extra, allow-missing, ignore", text::quoted(text)));
}

std::string verify(const ResourceSet& expected, const ResourceSet& found, const VerifyOptions& options) {
  Difference missing(reports_missing(options.core), reports_missing(options.gpu));
  Difference extra(reports_extra(options.core), reports_extra(options.gpu));
  for_each_pair(expected, found,
                [&](const IdSet& ranks, const ResourceGroup* want, const ResourceGroup* have) {
                  if (want != nullptr) missing.add(ranks, *want, have);
                  if (have != nullptr) extra.add(ranks, *have, want);
                });

  std::vector<std::string> findings;
  if (options.hostname != VerifyMode::ignore) findings.push_back(host_mismatch(expected, found));
  // An absent rank is named by its missing resources. List it here only if the options ignore those.
  const IdSet absent = expected.ranks() - found.ranks() - missing.take_ranks();
  if (reports_missing(options.hostname) && !absent.empty())
    findings.push_back(fmt::format("missing ranks: {}", absent.encode()));
  const bool with_ranks = (expected.ranks() | found.ranks()).count() > 1;
  if (const std::string text = missing.text(with_ranks); !text.empty())
    findings.push_back("missing resources: " + text);
  if (const std::string text = extra.text(with_ranks); !text.empty())
    findings.push_back("extra resources: " + text);
  std::erase(findings, std::string());
  return fmt::format("{}", fmt::join(findings, "; "));
}

}  // namespace resourced::rset
