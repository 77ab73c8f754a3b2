// The context of every command: its output, whether that is a terminal, the time, and the connection to the
// daemon, which is made when a command first needs it. And the functions that add the subcommands to
// `app`, in groups, with one source file for each group; their arguments must outlive the parsing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "cli/views/listing.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/time.hpp"

namespace resourced::cli::usage {
struct Command;
}  // namespace resourced::cli::usage

namespace resourced::cli::commands {

using views::UsageError;

/// An error with further lines, printed below the message, that show its place in the input.
class DetailedError : public Error {
 public:
  DetailedError(int errnum, const std::string& text, std::string detail)
      : Error(errnum, text), detail_(std::move(detail)) {}

  [[nodiscard]] const std::string& detail() const noexcept { return detail_; }

 private:
  std::string detail_;
};

/// Thrown to end a command after SIGINT. Its text, if any, says what remains in force.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(const std::string& text = {}) : std::runtime_error(text) {}
};

/// Thrown to end a command with exit status 1 and without a message, because the status is the answer.
class SilentFailure : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the exit status is the answer"; }
};

using Clock = std::function<WallTime()>;

class Context {
 public:
  /// Makes a context; `timeout` is the longest wait for an answer of the daemon.
  Context(std::istream& in, std::ostream& out, std::ostream& err, bool terminal, bool interactive, Clock now,
          client::Milliseconds timeout);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] std::istream& in() const noexcept { return in_; }
  [[nodiscard]] std::ostream& out() const noexcept { return out_; }
  /// Whether the output is a terminal, so that colour and symbols are used.
  [[nodiscard]] bool terminal() const noexcept { return terminal_; }
  /// Whether the input is a terminal as well, so that a command may ask a question.
  [[nodiscard]] bool interactive() const noexcept { return interactive_; }
  [[nodiscard]] WallTime now() const { return now_(); }
  [[nodiscard]] client::Milliseconds timeout() const noexcept { return timeout_; }

  /// Options of the program. An empty URI or key file stands for the client's default.
  std::string uri;
  std::string key_file;
  /// Value of --color: auto, always or never.
  std::string color = "auto";
  /// The number of arguments behind a `--`.
  std::optional<std::size_t> words_behind_dashes;

  enum class Absent { fails, is_waited_for };
  /// Returns the connection. With several URIs it is connected to the leader, or this throws Error
  /// EHOSTUNREACH after the time-out, by default 20 s, unless the command waits for the daemon.
  [[nodiscard]] client::Connection& connection(Absent daemon = Absent::fails);
  nlohmann::json call(std::string_view topic);
  nlohmann::json call(std::string_view topic, const nlohmann::json& payload);
  /// Calls a topic. Returns nothing if the daemon does not serve it, or not for this user.
  std::optional<nlohmann::json> call_if_served(std::string_view topic, const nlohmann::json& payload);
  /// Sets the time-out of calls and of the wait for a leader, which is shorter by default. Nothing means no
  /// limit.
  void set_timeout(std::optional<client::Milliseconds> longest);
  /// Limits the wait for an answer to this time, if that is less than before.
  void shorten_timeout(client::Milliseconds longest) { timeout_ = std::min(timeout_, longest); }

  /// Writes a line and flushes it, with control characters as escapes (printable()). Throws Error EIO if it
  /// cannot be written.
  void print_line(std::string_view text) const;
  /// Writes a line to standard error in the form of an error, but the command continues.
  void warn(std::string_view text) const;

 private:
  std::istream& in_;
  std::ostream& out_;
  std::ostream& err_;
  bool terminal_;
  bool interactive_;
  Clock now_;
  client::Milliseconds timeout_;
  std::optional<client::Milliseconds> failover_timeout_;
  std::unique_ptr<client::Connection> connection_;
};

void register_status(usage::Command& app, Context& context);
void register_inventory(usage::Command& app, Context& context);
void register_show(usage::Command& app, Context& context);
void register_top(usage::Command& app, Context& context);
void register_report(usage::Command& app, Context& context);
void register_drain(usage::Command& app, Context& context);
void register_acquire(usage::Command& app, Context& context);
void register_daemon(usage::Command& app, Context& context);
void register_cluster(usage::Command& app, Context& context);
void register_keygen(usage::Command& app, Context& context);
void register_properties(usage::Command& app, Context& context);
void register_changes(usage::Command& app, Context& context);
void register_allocations(usage::Command& app, Context& context);
void register_rolling(usage::Command& app, Context& context);
void register_eventlog(usage::Command& app, Context& context);
void register_idset(usage::Command& app, Context& context);
void register_hostlist(usage::Command& app, Context& context);
void register_slurm(usage::Command& app, Context& context);

void register_requests(usage::Command& app, Context& context);
void register_feasibility(usage::Command& app, Context& context);

// Subcommands of `R`.
void register_r_show(usage::Command& r, Context& context);
void register_r_make(usage::Command& r, Context& context);
void register_r_decode(usage::Command& r, Context& context);
void register_r_combine(usage::Command& r, Context& context);

}  // namespace resourced::cli::commands
