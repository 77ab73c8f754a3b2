// Sets an environment variable for the duration of a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace resourced::test {

class Variable {
 public:
  Variable(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) {
      setenv(name_.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }

  std::string name_;
  std::optional<std::string> before_;
};

/// Unsets the environment variables of hwloc.
class NoHwlocVariables {
  Variable xml_{"HWLOC_XMLFILE", std::nullopt};
  Variable synthetic_{"HWLOC_SYNTHETIC", std::nullopt};
  Variable this_system_{"HWLOC_THISSYSTEM", std::nullopt};
};

}  // namespace resourced::test
