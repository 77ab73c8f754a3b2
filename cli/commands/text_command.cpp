// resourcectl idset and hostlist: the text forms of RFC 22 and RFC 29, without a daemon.
#include <cerrno>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "cli/usage/command.hpp"
#include "core/error.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::cli::commands {

namespace {

/// Writes words separated by blanks, one at a time: the ids of a set as text may not fit in memory.
class WordWriter {
 public:
  explicit WordWriter(std::ostream& out) : out_(out) {}

  template <class T>
  void add(const T& word) {
    if (!first_) out_ << ' ';
    first_ = false;
    out_ << word;
    // The reader has closed the pipe, so the rest need not be printed.
    if (!out_) throw Error(EIO, "cannot write to standard output");
  }
  void end() { out_ << '\n'; }

 private:
  std::ostream& out_;
  bool first_ = true;
};

void register_idset(usage::Command& app, Context& context) {
  struct Options {
    std::string expression;
    bool expand = false;
    bool count = false;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("idset", "Print an idset (RFC 22) in its canonical form");
  command->add_option("EXPR", options->expression, "An idset")->required();
  auto* expand = command->add_flag("--expand", options->expand, "Print the ids one by one");
  command->add_flag("--count", options->count, "Print the number of ids")->excludes(expand);
  command->callback([options, &context] {
    const auto ids = text::IdSet::parse(options->expression);
    if (options->expand) {
      WordWriter words(context.out());
      ids.for_each([&](text::IdSet::Id id) { words.add(id); });
      words.end();
    } else {
      context.print_line(options->count ? std::to_string(ids.count()) : ids.encode());
    }
  });
}

struct HostlistOptions {
  std::vector<std::string> expressions;
  std::string find;
  bool expand = false;
  bool count = false;
  bool sort = false;
  bool unique = false;
};

void print_hostlist(Context& context, const HostlistOptions& options) {
  text::Hostlist hosts;
  for (const auto& expression : options.expressions) hosts.append(text::Hostlist::parse(expression));
  if (options.sort) hosts.sort();
  if (options.unique) hosts.unique();
  if (!options.find.empty()) {
    const auto position = hosts.find(options.find);
    if (!position) throw Error(ENOENT, fmt::format("no host {} in the list", options.find));
    context.print_line(std::to_string(*position));
  } else if (options.count) {
    context.print_line(std::to_string(hosts.size()));
  } else if (options.expand) {
    WordWriter words(context.out());
    hosts.for_each([&](std::string_view host) { words.add(host); });
    words.end();
  } else {
    context.print_line(hosts.encode());
  }
}

void register_hostlist(usage::Command& app, Context& context) {
  auto options = std::make_shared<HostlistOptions>();
  auto* command = app.add_subcommand("hostlist", "Print a list of hosts (RFC 29) in its compressed form");
  command->add_option("EXPR", options->expressions, "Lists of hosts, which are concatenated")->required();
  auto* expand = command->add_flag("--expand", options->expand, "Print the hosts one by one");
  auto* count = command->add_flag("--count", options->count, "Print the number of hosts")->excludes(expand);
  command->add_flag("--sort", options->sort, "Sort by name and number");
  command->add_flag("--unique", options->unique, "Sort, and remove duplicates");
  command->add_option("--find", options->find, "Print the position of a host, counted from 0")
      ->type_name("HOST")
      ->excludes(expand)
      ->excludes(count);
  command->callback([options, &context] { print_hostlist(context, *options); });
}

}  // namespace

void register_text_forms(usage::Command& app, Context& context) {
  register_idset(app, context);
  register_hostlist(app, context);
}

}  // namespace resourced::cli::commands
