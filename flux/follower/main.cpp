// resourced-follower: the service process of the keeper on ranks above 0.
#include <cstdio>
#include <exception>

#include "flux/follower/follower.hpp"

int main() {
  using namespace resourced::flux;
  try {
    const module::Inherited inherited = module::read_environment();
    const module::Welcome welcome = module::read_welcome(inherited.welcome);
    module::Channel channel(inherited.link, inherited.generation, welcome.rank);
    return follower::run(channel, welcome);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resourced-follower: %s\n", error.what());
    return 1;
  }
}
