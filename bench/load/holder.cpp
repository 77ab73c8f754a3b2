#include "bench/load/holder.hpp"

#include <cstdio>

#include <unistd.h>

#include "bench/load/bus_client.hpp"

namespace resourced::bench {

void hold(const std::string& uri) {
  BusClient scheduler(uri);
  scheduler.open("resource.acquire", R"({"lease":5.0})");
  scheduler.expect();
  std::puts("ready");
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace resourced::bench
