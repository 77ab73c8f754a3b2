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

/// The size of the terminal; 24 rows of 80 columns if it does not tell.
[[nodiscard]] views::Size size_of_terminal();

/// One at a time. Standard output is a terminal that moves its cursor.
class Screen {
 public:
  /// With `reads_keys` standard input is a terminal, too: keys are not echoed, and read_keys() returns them.
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

/// The keys that were pressed since the last call, without waiting; EOF as Ctrl-D. Ctrl-Z is a key as well.
/// Standard input is a terminal.
[[nodiscard]] std::string read_keys();

/// The bytes that draw these lines from the upper left corner on, and clear the rest of so many rows.
[[nodiscard]] std::string encode_frame(const std::vector<views::Line>& lines, std::size_t rows, bool colours);

}  // namespace resourced::cli::screen
