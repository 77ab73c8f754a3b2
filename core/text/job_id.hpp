// Job ids of Flux (RFC 19): a number of 64 bits with several forms as text.
#pragma once

#include <cstdint>
#include <string_view>

namespace resourced::text {

/// Reads a job id in base 58 with its mark (`ƒuzzybunny`, `fuzzybunny`), as a decimal or hexadecimal number
/// (`1234`, `0x4d2`), as four groups of four hexadecimal digits (`0000.0000.0000.04d2`), or as such groups
/// after `job.`, the key of the job in the KVS. Mnemonics are not read. Throws Error EINVAL.
[[nodiscard]] std::uint64_t parse_job_id(std::string_view text);

}  // namespace resourced::text
