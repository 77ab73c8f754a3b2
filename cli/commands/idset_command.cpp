// resourcectl idset: the text form of RFC 22, without a daemon.
#include <memory>
#include <string>

#include "cli/commands/context.hpp"
#include "cli/commands/word_writer.hpp"
#include "cli/usage/command.hpp"
#include "core/text/idset.hpp"

namespace resourced::cli::commands {

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

}  // namespace resourced::cli::commands
