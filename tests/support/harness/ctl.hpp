// Runs resourcectl with a command line; returns its exit status, output and errors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/process.hpp"

namespace resourced::e2e {

class Ctl {
 public:
  explicit Ctl(std::string uri) : uri_(std::move(uri)) {}

  /// Runs `resourcectl --uri URI ARGUMENTS...` to its end.
  [[nodiscard]] Outcome run(const std::vector<std::string>& arguments) const;
  /// Runs a command and returns its standard output. Throws its standard error if the exit status is not 0.
  [[nodiscard]] std::string output(const std::vector<std::string>& arguments) const;
  /// Like output(), for commands whose output does not matter.
  void done(const std::vector<std::string>& arguments) const;
  /// Starts a command and leaves it running, for commands that stream.
  [[nodiscard]] std::unique_ptr<Process> start(const std::vector<std::string>& arguments) const;
  /// Starts `resourcectl ... | READER` in a shell.
  [[nodiscard]] std::unique_ptr<Process> start_piped(const std::vector<std::string>& arguments,
                                                     const std::string& reader) const;

 private:
  std::string uri_;
};

}  // namespace resourced::e2e
