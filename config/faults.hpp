// Reports several errors of one configuration at once, so that a site can correct them all before it tries
// again.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace resourced::config {

/// An Error for several errors. what() has them in one line, separated by semicolons.
class Faults : public Error {
 public:
  explicit Faults(std::vector<std::string> lines);

  /// One line for each error, with file and line. The last one says so if some are left out.
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  std::vector<std::string> lines_;
};

/// Collects errors while reading continues.
class FaultList {
 public:
  /// Calls `read`, and keeps the Error that it throws.
  template <class Read>
  void attempt(Read&& read) {
    try {
      std::forward<Read>(read)();
    } catch (const Faults& faults) {
      for (const auto& line : faults.lines()) add(line, faults.errnum());
    } catch (const Error& error) {
      add(error.what(), error.errnum());
    }
  }

  /// Whether an error was left out: then reading may end, as a file can have very many errors.
  [[nodiscard]] bool is_full() const noexcept { return left_out_; }
  /// Throws the error if there is one, and Faults if there are several.
  void check() const;

 private:
  void add(const std::string& line, int errnum);

  std::vector<std::string> lines_;
  bool left_out_ = false;
  int errnum_ = 0;
};

}  // namespace resourced::config
