// The text of the sample file, generated from the table of settings.
#pragma once

#include <string>

namespace resourced::test {

[[nodiscard]] std::string sample_text();

}  // namespace resourced::test
