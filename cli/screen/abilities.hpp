// The look of the output: the one place that decides about colours, a cursor that moves, characters beyond
// ASCII, and the width of tables. It follows --color and the environment.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace resourced::cli::screen {

/// The values of --color. `automatic` is written `auto`.
enum class ColourChoice { automatic, always, never };
/// Nothing for any other text.
[[nodiscard]] std::optional<ColourChoice> parse_colour_choice(std::string_view text);

struct Abilities {
  /// It has a cursor that can be moved. Not with TERM=dumb, or without TERM.
  bool moves = false;
  /// Colours: always or never as the user says; otherwise on a terminal that moves its cursor, unless
  /// NO_COLOR is set to anything (no-color.org).
  bool colours = false;
  /// Characters beyond ASCII. By the locale; without one (no LC_ALL, LC_CTYPE and LANG) not on a terminal,
  /// but elsewhere, as texts are UTF-8.
  bool unicode = true;
  /// The columns of the terminal; nothing elsewhere, and for one that does not tell.
  std::optional<std::size_t> columns;
};
/// Of standard output, which is a terminal or not.
[[nodiscard]] Abilities abilities(ColourChoice choice, bool is_terminal);

}  // namespace resourced::cli::screen
