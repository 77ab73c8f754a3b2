// A terminal as a screen that is drawn as a whole: the alternate screen, its size, and single keys. The
// terminal is restored by the destructor, and before a signal ends the process.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "cli/screen/abilities.hpp"
#include "cli/views/overview.hpp"

namespace resourced::cli::screen {

/// Returns the size of the terminal; 24 rows of 80 columns if it does not report it.
[[nodiscard]] views::Size size_of_terminal();

/// The screen; only one may exist at a time. Requires a terminal that moves its cursor as standard output.
class Screen {
 public:
  /// Enters the screen. With `reads_keys` standard input must be a terminal, too: keys are not echoed, and
  /// read_keys() returns them.
  Screen(std::ostream& out, const Abilities& abilities, bool reads_keys);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  Screen(Screen&&) = delete;
  Screen& operator=(Screen&&) = delete;

  /// Replaces the lines on the screen. Throws Error EIO if they cannot be written.
  void draw(const std::vector<views::Line>& lines);

  /// Restores the terminal and stops the job, as Ctrl-Z does elsewhere. Returns when it is continued, with an
  /// empty screen.
  void suspend();

 private:
  void enter();

  std::ostream& out_;
  Abilities abilities_;
  bool reads_keys_;
};

/// Returns the keys that were pressed since the last call, without waiting; EOF as Ctrl-D. Ctrl-Z is a key as
/// well. Requires a terminal as standard input.
[[nodiscard]] std::string read_keys();

/// Returns the bytes that draw these lines from the upper left corner on, and clear the rest of `rows`.
[[nodiscard]] std::string encode_frame(const std::vector<views::Line>& lines, std::size_t rows, bool colours);

}  // namespace resourced::cli::screen
