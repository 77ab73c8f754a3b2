#include "daemon/log/store_locks.hpp"

#include <cstdint>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace resourced::daemon::log {
namespace {

// Bytes of the index of the write-ahead log (-shm) whose locks are those of readers (SQLite, "WAL-mode File
// Format", section 2.2).
constexpr std::uint64_t first_reader_byte = 123;
constexpr std::uint64_t last_reader_byte = 127;

std::string name_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

std::string user_of_store(const std::string& path, StoreUse use) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    // An example of a line: `1: POSIX  ADVISORY  WRITE 4711 08:01:131077 120 120`
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string advisory;
    std::string access;
    std::string file;
    std::uint64_t first = 0;
    pid_t process = 0;
    if (!(words >> number >> kind >> advisory >> access >> process >> file >> first)) continue;
    if (kind != "POSIX" || process <= 0 || process == ::getpid()) continue;
    const bool is_reader = access == "READ" && first >= first_reader_byte && first <= last_reader_byte;
    if (use == StoreUse::writes ? access != "WRITE" : !is_reader) continue;
    for (const char* suffix : {"", "-shm"}) {
      struct stat status {};
      if (::stat((path + suffix).c_str(), &status) != 0) continue;
      if (file == fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino))
        return fmt::format("process {} ({})", process, name_of(process));
    }
  }
  return "another program";
}

}  // namespace resourced::daemon::log
