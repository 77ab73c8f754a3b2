#include "cli/screen/abilities.hpp"

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <string>

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace resourced::cli::screen {

namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// Returns the name of the locale for characters, as POSIX defines it; empty if there is none.
std::string_view locale_name() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const auto value = variable(name); !value.empty()) return value;
  }
  return {};
}

/// Returns the encoding in a name such as `de_DE.UTF-8@euro`, in small letters and without its dashes.
std::string encoding_of(std::string_view locale) {
  locale = locale.substr(0, locale.find('@'));
  std::string encoding(locale.substr(std::min(locale.find('.'), locale.size())));
  std::erase_if(encoding, [](char c) { return c == '.' || c == '-'; });
  std::ranges::transform(encoding, encoding.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return encoding;
}

bool is_utf8(std::string_view locale) {
  if (const locale_t loaded = ::newlocale(LC_CTYPE_MASK, "", nullptr)) {
    const std::string_view encoding = ::nl_langinfo_l(CODESET, loaded);
    const bool found = encoding == "UTF-8";
    ::freelocale(loaded);
    return found;
  }
  // Use the name if this machine does not have the locale: the user's terminal may have it.
  return encoding_of(locale) == "utf8";
}

}  // namespace

std::optional<ColourChoice> parse_colour_choice(std::string_view text) {
  if (text == "auto") return ColourChoice::automatic;
  if (text == "always") return ColourChoice::always;
  if (text == "never") return ColourChoice::never;
  return std::nullopt;
}

Abilities abilities(ColourChoice choice, bool is_terminal) {
  Abilities found;
  const auto term = variable("TERM");
  found.moves = is_terminal && !term.empty() && term != "dumb";
  found.colours = choice == ColourChoice::always ||
                  (choice == ColourChoice::automatic && found.moves && variable("NO_COLOR").empty());
  const auto locale = locale_name();
  found.unicode = locale.empty() ? !is_terminal : is_utf8(locale);
  winsize size{};
  if (is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    found.columns = size.ws_col;
  return found;
}

}  // namespace resourced::cli::screen
