// resourcectl R decode: prints an R, a part of it, or its contents.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/context.hpp"
#include "cli/commands/input.hpp"
#include "cli/usage/command.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/short_form.hpp"
#include "core/rset/targets.hpp"

namespace resourced::cli::commands {

using rset::ResourceSet;

namespace {

struct DecodeOptions {
  bool short_form = false;
  std::vector<std::string> count;
  bool nodelist = false;
  bool ranks = false;
  std::string include;
  std::string exclude;
  std::string properties;
};

/// Reads targets like `flux R decode`: unknown ranks are ignored, but an unknown host is an error.
text::IdSet targets(const ResourceSet& set, const std::string& text) {
  if (rset::hosts_of_targets(text)) return parse_targets(text, set);
  return text::IdSet::parse(text) & set.ranks();
}

ResourceSet select(ResourceSet set, const DecodeOptions& options) {
  if (!options.include.empty()) set = set.copy_ranks(targets(set, options.include));
  if (!options.exclude.empty()) set = set.copy_ranks(set.ranks() - targets(set, options.exclude));
  if (!options.properties.empty()) set = set.copy_ranks(ranks_with_properties(set, options.properties));
  return set;
}

std::uint64_t count_of(const ResourceSet& set, const std::string& type) {
  const auto counts = set.counts();
  if (type == "node") return counts.nodes;
  return type == "core" ? counts.cores : counts.gpus;
}

/// Prints a line for each requested value, in the order of `flux R decode`.
void print(const ResourceSet& set, const DecodeOptions& options, Context& context) {
  if (options.short_form) context.print_line(rset::short_form(set));
  if (options.nodelist) context.print_line(set.nodelist().encode());
  if (options.ranks) context.print_line(set.ranks().encode());
  for (const std::string& type : options.count) context.print_line(std::to_string(count_of(set, type)));
  if (!options.short_form && !options.nodelist && !options.ranks && options.count.empty())
    context.print_line(set.encode());
}

}  // namespace

void register_r_decode(usage::Command& r, Context& context) {
  auto options = std::make_shared<DecodeOptions>();
  auto* command = r.add_subcommand("decode",
                                   "Read R on standard input, merge them if there are several, and print the "
                                   "result, a part of it, or its contents");
  command->add_flag("-s,--short", options->short_form, "Print the short form: rank[0-1]/core[0-3]");
  command->add_flag("-n,--nodelist", options->nodelist, "Print the hosts");
  command->add_flag("-r,--ranks", options->ranks, "Print the ranks");
  command->add_option("-c,--count", options->count, "Print the number of these: node, core or gpu")
      ->one_of({"node", "core", "gpu"})
      ->expected(1)
      ->take_all();
  command->add_option("-i,--include", options->include, "Only these ranks or hosts")->type_name("TARGETS");
  command->add_option("-x,--exclude", options->exclude, "All but these ranks or hosts")->type_name("TARGETS");
  command
      ->add_option("-p,--properties", options->properties,
                   "Only ranks with all of P,^Q: property P, and not Q")
      ->type_name("PROPERTIES");
  command->callback(
      [options, &context] { print(select(read_union_of_r(context), *options), *options, context); });
}

}  // namespace resourced::cli::commands
