// Shared by the tests of config/: a configuration from text, and the error of loading it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/inventory.hpp"
#include "config/reload.hpp"
#include "core/error.hpp"
#include "temp_dir.hpp"

namespace resourced::test {

inline config::Config load_text(std::string_view text) {
  const TempDir dir;
  return config::load(dir.write("c.toml", text));
}

struct Failure {
  int errnum = 0;
  std::string text;
};

/// Runs an action and returns its error; errnum 0 if it throws none.
inline Failure failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.errnum(), error.what()};
  }
  return {};
}

inline bool changes_nothing(const config::ReloadPlan& plan) {
  return plan.property_add.empty() && plan.property_remove.empty() && !plan.parent;
}

}  // namespace resourced::test
