// resourced-keeper: the process of a Flux instance's resource module. resource.py executes it at its end.
#include <cstdio>
#include <exception>

#include <malloc.h>

#include "cli/usage/parser.hpp"
#include "flux/keeper/keeper.hpp"

int main(int argc, char** argv) {
  // Return buffers of long answers to the system when they are freed. By default the C library raises this
  // threshold with the first of them, and keeps the later ones.
  constexpr int long_buffer = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, long_buffer);
  resourced::flux::keeper::Options options;
  resourced::cli::usage::Command app(
      "Keeps the channel of a Flux broker for a service process that may be started again.");
  app.add_option("--channel", options.channel, "descriptor of the broker's channel")->required();
  app.add_option("--queued", options.queued, "descriptor of a file of frames that were read from it already");
  app.add_option(
      "--welcome", options.welcome,
      "descriptor of a file with the attributes and configuration that the broker gave to the module");
  app.add_option("--rank", options.rank, "rank of the broker");
  long stop_within = options.stop_within.count();
  app.add_option("--stop-within", stop_within, "milliseconds until a service that does not stop is killed")
      ->positive();
  auto* const service = app.add_option("service", options.service, "the service and its arguments, after --");
  auto* const attach =
      app.add_option("--attach", options.attach, "Unix socket of a service that runs already");
  long attach_within = options.attach_within.count();
  app.add_option("--attach-within", attach_within, "milliseconds until a module that has not attached fails")
      ->positive();
  attach->excludes(service);
  if (const auto status = resourced::cli::usage::parse_or_print(app, argc, argv)) return *status;
  options.stop_within = std::chrono::milliseconds(stop_within);
  options.attach_within = std::chrono::milliseconds(attach_within);
  if (options.service.empty() == options.attach.empty()) {
    std::fprintf(stderr, "resourced-keeper: name a service to start, or one to attach to with --attach\n");
    return 2;
  }
  try {
    return resourced::flux::keeper::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resourced-keeper: %s\n", error.what());
    return 1;
  }
}
