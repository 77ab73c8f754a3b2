// resourcectl R decode: what is in an R, or in a part of it.
#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/input.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/short_form.hpp"

namespace resourced::cli {

namespace {

struct DecodeOptions {
  bool short_form = false;
  std::string count;
  bool nodelist = false;
  bool ranks = false;
  std::string include;
  std::string exclude;
  std::string properties;
};

ResourceSet select(ResourceSet set, const DecodeOptions& options) {
  if (!options.include.empty()) set = include(set, options.include);
  if (!options.exclude.empty()) set = exclude(set, options.exclude);
  if (!options.properties.empty()) set = set.copy_ranks(ranks_with_properties(set, options.properties));
  return set;
}

std::uint64_t count_of(const ResourceSet& set, const std::string& type) {
  const auto counts = set.counts();
  if (type == "node") return counts.nodes;
  return type == "core" ? counts.cores : counts.gpus;
}

std::string describe(const ResourceSet& set, const DecodeOptions& options) {
  if (options.short_form) return short_form(set);
  if (!options.count.empty()) return std::to_string(count_of(set, options.count));
  if (options.nodelist) return set.nodelist().encode();
  if (options.ranks) return set.ranks().encode();
  return set.encode();
}

}  // namespace

void register_r_decode(CLI::App& r, Context& context) {
  auto options = std::make_shared<DecodeOptions>();
  auto* command =
      r.add_subcommand("decode", "Read an R on standard input and print it, or a part, or what is in it");
  auto* what = command->add_option_group("what to print", "default: canonical R");
  what->add_flag("--short", options->short_form, "The short form: rank[0-1]/core[0-3]");
  what->add_option("--count", options->count, "How many of them: node, core, gpu")
      ->check(CLI::IsMember({"node", "core", "gpu"}));
  what->add_flag("--nodelist", options->nodelist, "The hosts");
  what->add_flag("--ranks", options->ranks, "The ranks");
  what->require_option(0, 1);
  command->add_option("--include", options->include, "Only these ranks or hosts");
  command->add_option("--exclude", options->exclude, "All but these ranks or hosts");
  command->add_option("--properties", options->properties,
                      "Only ranks with all of P,^Q: property P, and not Q");
  command->callback(
      [options, &context] { context.print_line(describe(select(read_r(context), *options), *options)); });
}

}  // namespace resourced::cli
