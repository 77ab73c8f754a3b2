// Decides, for all output, about colours, a cursor that moves, characters beyond ASCII, and the width of
// tables. The decision follows --color and the environment.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace resourced::cli::screen {

/// The values of --color. `automatic` is written `auto`.
enum class ColourChoice { automatic, always, never };
/// Reads a value of --color; returns nothing for any other text.
[[nodiscard]] std::optional<ColourChoice> parse_colour_choice(std::string_view text);

struct Abilities {
  /// Whether the terminal has a cursor that can be moved. False with TERM=dumb, or without TERM.
  bool moves = false;
  /// Whether to use colours: always or never as the user says; otherwise on a terminal that moves its cursor,
  /// unless NO_COLOR is set to anything (no-color.org).
  bool colours = false;
  /// Whether to print characters beyond ASCII. The locale decides. Without one (no LC_ALL, LC_CTYPE and LANG)
  /// a terminal gets ASCII, other output UTF-8.
  bool unicode = true;
  /// The columns of the terminal; nothing for other output, and if the terminal does not report them.
  std::optional<std::size_t> columns;
};
/// Returns the capabilities of standard output. `is_terminal` says whether it is a terminal.
[[nodiscard]] Abilities abilities(ColourChoice choice, bool is_terminal);

}  // namespace resourced::cli::screen
