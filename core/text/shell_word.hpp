// Quoting of text from outside in commands that a program prints for people to copy into a shell.
#pragma once

#include <string>
#include <string_view>

namespace resourced::text {

/// Returns the text as one word of a shell's command line: in single quotes, unless it has only letters,
/// digits and `_.,:/@%+-`. Brackets are quoted, because a shell replaces `n[1-2]` by the names of files such
/// as n1, and so is `=`, because zsh replaces `=name` by the path of a program.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace resourced::text
