#include "cli/commands/change.hpp"

#include <cerrno>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/commands/selection.hpp"
#include "core/rset/numeric_hosts.hpp"
#include "core/rset/targets.hpp"

namespace resourced::cli::commands {

using text::IdSet;

namespace {

Targets plain_targets(const std::string& text, Snapshot& snapshot) {
  const rset::ResourceSet* inventory = nullptr;
  try {
    inventory = &snapshot.status().inventory;
  } catch (const Error& error) {
    // EAGAIN means that the inventory of a Flux instance is not known yet, but its brokers are.
    if (error.errnum() != EAGAIN) throw;
    return {text, std::nullopt};
  }
  if (reads_as_ranks(text)) rset::refuse_numbers_of_hosts(IdSet::parse(text), *inventory);
  try {
    return {text, rset::parse_targets(text, *inventory)};
  } catch (const Error& error) {
    // Ignore EINVAL: the daemon sends the text of the refusal.
    if (error.errnum() != EINVAL) throw;
    return {text, std::nullopt};
  }
}

/// Returns the daemon's text with hosts, as far as the inventory is known.
std::string explain(const Error& error, const std::string& targets, Snapshot& snapshot) {
  const std::string_view text = error.what();
  if (!text.starts_with("rank") && !text.starts_with("unknown host")) return error.what();
  try {
    return explain_refusal(error.what(), targets, snapshot.status());
  } catch (const std::exception&) {
    return error.what();
  }
}

}  // namespace

const proto::topics::Status& Snapshot::status() {
  if (!status_) status_ = proto::topics::parse_status(context_.call("resource.status"));
  return *status_;
}

Targets read_targets(const std::string& text, Snapshot& snapshot, Excluded excluded, bool resolve) {
  // Resolve numbers even if the ranks are not needed, because they may be names of hosts.
  if (!has_selector(text))
    return resolve || reads_as_ranks(text) ? plain_targets(text, snapshot) : Targets{text, std::nullopt};
  auto selection = select_targets(text, snapshot.status(), excluded);
  return {std::move(selection.request), std::move(selection.ranks)};
}

void change_targets(Context& context, const char* topic, const nlohmann::json& payload,
                    const std::string& targets, Snapshot& snapshot) {
  try {
    context.call(topic, payload);
  } catch (const Error& error) {
    throw Error(error.errnum(), explain(error, targets, snapshot));
  }
}

void print_change(const Context& context, const ReportOptions& options, const std::string& text,
                  const nlohmann::ordered_json& object) {
  if (options.quiet) return;
  context.print_line(options.json ? object.dump() : text);
}

std::string count_nodes(const IdSet& ranks, Snapshot& snapshot) {
  return fmt::format("{} node{}: {}", ranks.count(), ranks.count() == 1 ? "" : "s",
                     snapshot.status().inventory.hosts(ranks).encode());
}

void add_targets(nlohmann::ordered_json& object, const Targets& targets, Snapshot& snapshot) {
  if (!targets.ranks) {
    object["targets"] = targets.request;
    return;
  }
  object["nnodes"] = targets.ranks->count();
  object["ranks"] = targets.ranks->encode();
  object["nodelist"] = snapshot.status().inventory.hosts(*targets.ranks).encode();
}

std::string describe(const Targets& targets, Snapshot& snapshot) {
  return targets.ranks ? count_nodes(*targets.ranks, snapshot) : "targets " + targets.request;
}

}  // namespace resourced::cli::commands
