// A node's name and R, see node.hpp.
#include "hw/node.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::hw {

namespace {

IdSet numbered(std::uint32_t count) { return count == 0 ? IdSet{} : IdSet::range(0, count - 1); }

}  // namespace

std::string local_hostname() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) {
    const int errnum = errno;
    throw Error(errnum, fmt::format("gethostname: {}", std::strerror(errnum)));
  }
  return name.data();
}

ResourceSet node_resources(const std::string& hostname, const Hardware& hardware) {
  if (hardware.cores == 0) throw Error(EINVAL, "there is no core that this process may use");
  Hostlist hosts;
  hosts.append(hostname);
  return ResourceSet({{IdSet{0}, numbered(hardware.cores), numbered(hardware.gpus)}}, hosts);
}

}  // namespace resourced::hw
