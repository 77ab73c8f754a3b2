#include <cerrno>
#include <string>

#include "cli/slurm/conf_lines.hpp"
#include "cli/slurm/inventory.hpp"
#include "config/toml_text.hpp"
#include "core/error.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    namespace slurm = resourced::cli::slurm;
    const auto lines = slurm::read_conf("f", [text](const std::string& path) {
      if (path != "f") throw resourced::Error(ENOENT, path);
      return std::string(text);
    });
    const std::string toml = slurm::to_toml(slurm::read_inventory(lines));
    try {
      (void)resourced::config::parse_toml(toml, "toml", 0);
    } catch (const resourced::Error& error) {
      FUZZ_CHECK(false);
    }
  });
}
