// The sample file as the table of settings gives it.
#pragma once

#include <string>

namespace resourced::test {

[[nodiscard]] std::string sample_text();

}  // namespace resourced::test
