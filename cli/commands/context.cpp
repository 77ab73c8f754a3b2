// The context of a command, see context.hpp.
#include "cli/commands/context.hpp"

#include <cerrno>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/utf8.hpp"

namespace resourced::cli::commands {

Context::Context(std::istream& in, std::ostream& out, std::ostream& err, bool terminal, bool interactive,
                 Clock now, client::Milliseconds timeout)
    : in_(in),
      out_(out),
      err_(err),
      terminal_(terminal),
      interactive_(interactive),
      now_(std::move(now)),
      timeout_(timeout) {}

Context::~Context() = default;

client::Connection& Context::connection(Absent daemon) {
  if (!connection_) {
    client::ConnectionOptions options;
    options.call_timeout = timeout_;
    if (failover_timeout_) options.failover_timeout = *failover_timeout_;
    options.key_file = key_file;
    options.on_no_leader = [this](const std::string& why) { warn("waiting for a leader: " + why); };
    connection_ = std::make_unique<client::Connection>(uri, options);
    if (connection_->has_places() && daemon == Absent::fails) connection_->connect();
  }
  return *connection_;
}

void Context::set_timeout(std::optional<client::Milliseconds> longest) {
  if (longest == client::Milliseconds(0)) throw UsageError("--timeout: 0s leaves no time for an answer");
  constexpr client::Milliseconds without_limit = std::chrono::hours(24 * 365);
  timeout_ = longest.value_or(without_limit);
  failover_timeout_ = timeout_;
}

nlohmann::json Context::call(std::string_view topic) { return call(topic, nullptr); }

nlohmann::json Context::call(std::string_view topic, const nlohmann::json& payload) {
  return connection().call(topic, payload, timeout_);
}

std::optional<nlohmann::json> Context::call_if_served(std::string_view topic, const nlohmann::json& payload) {
  try {
    return call(topic, payload);
  } catch (const Error& error) {
    if (error.errnum() == ENOSYS || error.errnum() == EPERM || error.errnum() == ENOENT) return std::nullopt;
    throw;
  }
}

void Context::print_line(std::string_view text) const {
  out_ << json_text::printable(text) << '\n' << std::flush;
  if (!out_) throw Error(EIO, "cannot write to standard output");
}

void Context::warn(std::string_view text) const {
  err_ << "resourcectl: " << json_text::printable_line(text) << std::endl;
}

}  // namespace resourced::cli::commands
