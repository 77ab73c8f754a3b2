// The context of every command: its output, whether that is a terminal, the time, and the connection to the
// daemon, which is made when a command first needs it.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "cli/views/listing.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/time.hpp"

namespace resourced::cli::commands {

using views::UsageError;

/// A failure with lines that show the place, for below the line that says what is wrong.
class DetailedError : public Error {
 public:
  DetailedError(int errnum, const std::string& text, std::string detail)
      : Error(errnum, text), detail_(std::move(detail)) {}

  [[nodiscard]] const std::string& detail() const noexcept { return detail_; }

 private:
  std::string detail_;
};

using Clock = std::function<WallTime()>;

class Context {
 public:
  /// `timeout` is the longest wait for an answer of the daemon.
  Context(std::istream& in, std::ostream& out, bool terminal, Clock now, client::Milliseconds timeout);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] std::istream& in() const noexcept { return in_; }
  [[nodiscard]] std::ostream& out() const noexcept { return out_; }
  /// Output goes to a person: colour and symbols are welcome.
  [[nodiscard]] bool terminal() const noexcept { return terminal_; }
  [[nodiscard]] WallTime now() const { return now_(); }
  [[nodiscard]] client::Milliseconds timeout() const noexcept { return timeout_; }

  /// Options of the program. An empty URI or key file stands for the client's default.
  std::string uri;
  std::string key_file;

  [[nodiscard]] client::Connection& connection();
  nlohmann::json call(std::string_view topic);
  nlohmann::json call(std::string_view topic, const nlohmann::json& payload);

  /// Writes a line and flushes it, with control characters as escapes (printable()). Throws Error EIO if it
  /// cannot be written.
  void print_line(std::string_view text) const;

 private:
  std::istream& in_;
  std::ostream& out_;
  bool terminal_;
  Clock now_;
  client::Milliseconds timeout_;
  std::unique_ptr<client::Connection> connection_;
};

}  // namespace resourced::cli::commands
