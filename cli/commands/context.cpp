// The context of a command, see context.hpp.
#include "cli/commands/context.hpp"

#include <cerrno>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/utf8.hpp"

namespace resourced::cli::commands {

Context::Context(std::istream& in, std::ostream& out, bool terminal, bool interactive, Clock now,
                 client::Milliseconds timeout)
    : in_(in),
      out_(out),
      terminal_(terminal),
      interactive_(interactive),
      now_(std::move(now)),
      timeout_(timeout) {}

Context::~Context() = default;

client::Connection& Context::connection() {
  if (!connection_) {
    client::ConnectionOptions options;
    options.call_timeout = timeout_;
    options.key_file = key_file;
    connection_ = std::make_unique<client::Connection>(uri, options);
  }
  return *connection_;
}

nlohmann::json Context::call(std::string_view topic) { return connection().call(topic); }

nlohmann::json Context::call(std::string_view topic, const nlohmann::json& payload) {
  return connection().call(topic, payload);
}

void Context::print_line(std::string_view text) const {
  out_ << json_text::printable(text) << '\n' << std::flush;
  if (!out_) throw Error(EIO, "cannot write to standard output");
}

}  // namespace resourced::cli::commands
