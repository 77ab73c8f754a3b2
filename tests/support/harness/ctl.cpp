#include "harness/ctl.hpp"

#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace resourced::e2e {

std::unique_ptr<Process> Ctl::start(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command{RESOURCED_BIN "/resourcectl", "--uri", uri_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return std::make_unique<Process>(command);
}

std::unique_ptr<Process> Ctl::start_piped(const std::vector<std::string>& arguments,
                                          const std::string& reader) const {
  std::vector<std::string> command{"/bin/sh", "-c", "\"$0\" \"$@\" | " + reader, RESOURCED_BIN "/resourcectl",
                                   "--uri",   uri_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return std::make_unique<Process>(command);
}

Outcome Ctl::run(const std::vector<std::string>& arguments) const { return start(arguments)->finish(); }

std::string Ctl::output(const std::vector<std::string>& arguments) const {
  Outcome outcome = run(arguments);
  if (outcome.status != 0) {
    throw std::runtime_error(
        fmt::format("resourcectl {}: status {}: {}", fmt::join(arguments, " "), outcome.status, outcome.err));
  }
  return std::move(outcome.out);
}

void Ctl::done(const std::vector<std::string>& arguments) const { static_cast<void>(output(arguments)); }

}  // namespace resourced::e2e
