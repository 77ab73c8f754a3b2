// resourced-follower: the service behind the keeper on ranks above 0.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "flux/follower/follower.hpp"

namespace {

int descriptor(const char* name) {
  const char* text = std::getenv(name);
  constexpr const char* scheme = "fd://";
  if (text == nullptr || std::string(text).rfind(scheme, 0) != 0) {
    throw std::runtime_error(std::string(name) + " is not set: resourced-keeper starts this program");
  }
  return std::stoi(std::string(text).substr(std::string(scheme).size()));
}

}  // namespace

int main() {
  using namespace resourced::flux;
  try {
    const int socket = descriptor("RESOURCED_FLUX_LINK");
    const module::Welcome welcome = module::read_welcome(descriptor("RESOURCED_FLUX_WELCOME"));
    const char* generation = std::getenv("RESOURCED_FLUX_GENERATION");
    module::Channel channel(
        socket, static_cast<std::uint8_t>(generation == nullptr ? 1 : std::stoi(generation)), welcome.rank);
    return follower::run(channel, welcome);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resourced-follower: %s\n", error.what());
    return 1;
  }
}
