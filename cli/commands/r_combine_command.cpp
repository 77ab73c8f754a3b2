// resourcectl R append, diff, intersect, remap, rerank, verify, set-property: one R from others.
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/context.hpp"
#include "cli/commands/input.hpp"
#include "cli/usage/command.hpp"
#include "core/error.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/verify.hpp"

namespace resourced::cli::commands {

using rset::ResourceSet;

namespace {

using Combine = ResourceSet (*)(const ResourceSet&, const ResourceSet&);

void add_combination(usage::Command& r, Context& context, const char* name, const char* description,
                     std::size_t least, Combine combine) {
  auto* command = r.add_subcommand(name, description);
  command->callback([least, combine, &context] {
    auto sets = read_several_r(context, least);
    ResourceSet result = std::move(sets.front());
    for (std::size_t i = 1; i < sets.size(); ++i) result = combine(result, sets[i]);
    context.print_line(result.encode());
  });
}

void add_verify(usage::Command& r, Context& context) {
  struct Options {
    std::string mode;
  };
  auto options = std::make_shared<Options>();
  auto* command = r.add_subcommand(
      "verify", "Compare two R on standard input: the expected resources, and the found ones");
  command
      ->add_option("--mode", options->mode,
                   "How to compare the resources, as in [resource.verify]; default: as without that table")
      ->type_name("MODE")
      ->one_of({"strict", "allow-extra", "allow-missing", "ignore"});
  command->callback([options, &context] {
    const auto sets = read_several_r(context, 2);
    if (sets.size() > 2) throw Error(EINVAL, "needs 2 R documents on standard input, found more");
    const auto how = options->mode.empty() ? rset::VerifyOptions{}
                                           : rset::VerifyOptions::all(rset::parse_verify_mode(options->mode));
    const auto mismatch = verify(sets[0], sets[1], how);
    if (!mismatch.empty()) throw Error(EINVAL, mismatch);
  });
}

}  // namespace

void register_r_combine(usage::Command& r, Context& context) {
  add_combination(r, context, "append",
                  "Print the union of all R on standard input, which share no resources", 1, rset::append);
  add_combination(r, context, "diff",
                  "Print the resources of the first R on standard input that are in none of the others", 2,
                  rset::diff);
  add_combination(r, context, "intersect", "Print the resources that are in all R on standard input", 2,
                  rset::intersect);

  auto* remap_command =
      r.add_subcommand("remap", "Print the union of all R on standard input, with ranks renumbered from 0");
  remap_command->callback([&context] { context.print_line(remap(read_union_of_r(context)).encode()); });

  auto hosts = std::make_shared<std::string>();
  auto* rerank_command = r.add_subcommand(
      "rerank", "Print the union of all R on standard input, with ranks renumbered in the order of hosts");
  rerank_command->add_option("HOSTS", *hosts, "The hosts in their new order")->required();
  rerank_command->callback([hosts, &context] {
    context.print_line(rerank(read_union_of_r(context), text::Hostlist::parse(*hosts)).encode());
  });

  add_verify(r, context);

  auto properties = std::make_shared<std::vector<std::string>>();
  auto* set_property_command =
      r.add_subcommand("set-property", "Print the union of all R on standard input, with further properties");
  set_property_command->add_option("PROPERTY", *properties, "NAME[:RANKS], without ranks for all of them")
      ->required();
  set_property_command->callback([properties, &context] {
    auto set = read_union_of_r(context);
    for (const auto& property : *properties) set_property(set, property);
    context.print_line(set.encode());
  });
}

}  // namespace resourced::cli::commands
