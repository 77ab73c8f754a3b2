// Writes a list of words on one line, one word at a time: the members of a set as text may not fit in memory.
#pragma once

#include <cerrno>
#include <ostream>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace resourced::cli::commands {

class WordWriter {
 public:
  explicit WordWriter(std::ostream& out, std::string delimiter = " ")
      : out_(out), delimiter_(std::move(delimiter)) {}

  /// Writes a word. Throws Error EIO if it cannot be written: when the reader has closed the pipe, the other
  /// words need not be printed.
  template <class T>
  void add(const T& word) {
    if (!first_) out_ << delimiter_;
    first_ = false;
    out_ << word;
    if (!out_) throw Error(EIO, "cannot write to standard output");
  }
  void end() { out_ << '\n'; }

 private:
  std::ostream& out_;
  std::string delimiter_;
  bool first_ = true;
};

}  // namespace resourced::cli::commands
