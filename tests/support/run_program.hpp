// Runs resourcectl as a function, with texts for its input and output.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/program.hpp"

namespace resourced::test {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

/// Runs a command at the time 1700000000; its output is not a terminal.
inline Outcome run(const std::vector<std::string>& arguments, const std::string& input = {},
                   client::Milliseconds timeout = client::Milliseconds(30000)) {
  std::vector<const char*> argv = {"resourcectl"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  Outcome outcome;
  outcome.status = cli::run(
      static_cast<int>(argv.size()), argv.data(), in, out, err, false, [] { return wall_time(1700000000); },
      timeout);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

}  // namespace resourced::test
