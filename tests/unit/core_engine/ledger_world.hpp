// A started engine with a scheduler, for the tests of the ledger.
#pragma once

#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/constraint/query.hpp"
#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "fold.hpp"

namespace resourced::engine::ledger_tests {

using module::AllocationRequest;
using module::FreeRequest;
using rset::ResourceSet;
using text::IdSet;

/// Targets of one kind: ranks from 0, each with cores 0 to `last_core` and gpu 0.
inline std::shared_ptr<const ResourceSet> cluster(std::string_view hosts, IdSet::Id last_core = 3) {
  text::Hostlist nodelist = text::Hostlist::parse(hosts);
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(nodelist.size() - 1));
  return std::make_shared<const ResourceSet>(
      std::vector<rset::ResourceGroup>{{ranks, IdSet::range(0, last_core), IdSet{0}}}, std::move(nodelist));
}

inline ResourceSet part(std::string_view ranks, std::string_view cores, std::string_view hosts,
                        std::string_view gpus = "") {
  return {{{IdSet::parse(ranks), IdSet::parse(cores), gpus.empty() ? IdSet{} : IdSet::parse(gpus)}},
          text::Hostlist::parse(hosts)};
}

/// A started engine with a scheduler that holds everything, and the state that its log leads to.
struct World {
  Engine engine;
  Fold fold;
  std::vector<module::PartitionRule> partitions;

  explicit World(std::string_view hosts, std::vector<module::PartitionRule> rules = {}, Fold recorded = {},
                 IdSet::Id last_core = 3)
      : World(cluster(hosts, last_core), std::move(rules), std::move(recorded)) {}
  explicit World(std::shared_ptr<const ResourceSet> inventory, std::vector<module::PartitionRule> rules = {},
                 Fold recorded = {})
      : fold(std::move(recorded)), partitions(std::move(rules)) {
    Start input;
    input.command.inventory = std::move(inventory);
    input.command.online = input.command.inventory->ranks();
    input.state = fold.state;
    input.command.partitions = partitions;
    step(input);
    if (partitions.empty()) step(Acquire{1, {}});
  }
  Effects step(const Input& input, double now = 20) {
    Effects effects = engine.step(input, {wall_time(now), steady_time(now)});
    for (const Record& record : effects.records) fold.apply(record);
    return effects;
  }
  Effects alloc(std::vector<AllocationRequest> wanted, std::vector<HolderId> holders = {1}) {
    return step(ChangeLedger{std::move(holders), {{}, std::move(wanted)}});
  }
  Effects alloc(std::string id, ResourceSet resources, std::vector<HolderId> holders = {1}) {
    return alloc({{std::move(id), std::move(resources)}}, std::move(holders));
  }
  Effects free(const std::vector<std::string>& ids, const std::optional<IdSet>& ranks = {},
               std::vector<HolderId> holders = {1}, const std::optional<std::string>& partition = {}) {
    return step(ChangeLedger{std::move(holders), {frees(ids, partition, ranks)}});
  }
  Effects change(std::vector<FreeRequest> frees, std::vector<AllocationRequest> wanted, bool repeat = false,
                 std::vector<HolderId> holders = {1}) {
    return step(ChangeLedger{std::move(holders), {std::move(frees), std::move(wanted), repeat}});
  }
  /// An operator frees allocations.
  Effects force_free(const std::vector<std::string>& ids, const std::optional<std::string>& partition = {}) {
    return step(module::LedgerCommand{frees(ids, partition)});
  }
  static std::vector<FreeRequest> frees(const std::vector<std::string>& ids,
                                        const std::optional<std::string>& partition = {},
                                        const std::optional<IdSet>& ranks = {}) {
    std::vector<FreeRequest> all;
    for (const std::string& id : ids) all.push_back({id, partition, ranks});
    return all;
  }
  /// Runs work that must fail with this errno and change nothing; returns the error text.
  template <class Work>
  std::string refusal(int errnum, Work work) {
    const auto applied = engine.applied();
    const std::string before = text();
    try {
      work();
    } catch (const Error& error) {
      CHECK(error.errnum() == errnum);
      CHECK(engine.applied() == applied);
      CHECK(text() == before);
      return error.what();
    }
    return "done";
  }
  /// The ledger as text: PARTITION/ID:RANKS/CORES; for each group, HOST/CORES? for absent targets.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const auto& [name, allocation] : engine.module().ledger().all()) {
      out += out.empty() ? "" : " ";
      if (!name.partition.empty()) out += name.partition + "/";
      out += name.id + ":";
      for (const auto& group : allocation->resources.groups())
        out += group.ranks.encode() + "/" + group.cores.encode() + ";";
      for (const auto& absent : allocation->absent)
        out += absent.target.host + "/" + absent.cores.encode() + "?";
    }
    return out;
  }
  /// Starts another daemon with the state of this one's log, on another inventory.
  [[nodiscard]] World restarted(std::string_view hosts, IdSet::Id last_core = 3) const {
    return World(hosts, partitions, fold, last_core);
  }
};

}  // namespace resourced::engine::ledger_tests
