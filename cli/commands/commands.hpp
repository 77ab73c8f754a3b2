// The subcommands of resourcectl, in groups, one file each. A group adds its subcommands to `app`, with their
// options and what they do; both arguments outlive the parsing.
#pragma once

namespace CLI {
class App;
}

namespace resourced::cli::commands {

class Context;

void register_status(CLI::App& app, Context& context);
void register_inventory(CLI::App& app, Context& context);
void register_drain(CLI::App& app, Context& context);
void register_acquire(CLI::App& app, Context& context);
void register_daemon(CLI::App& app, Context& context);
void register_keygen(CLI::App& app, Context& context);
void register_changes(CLI::App& app, Context& context);
void register_eventlog(CLI::App& app, Context& context);
void register_text_forms(CLI::App& app, Context& context);

void register_requests(CLI::App& app, Context& context);
void register_feasibility(CLI::App& app, Context& context);

// Subcommands of `R`.
void register_r_show(CLI::App& r, Context& context);
void register_r_make(CLI::App& r, Context& context);
void register_r_decode(CLI::App& r, Context& context);
void register_r_combine(CLI::App& r, Context& context);

}  // namespace resourced::cli::commands
