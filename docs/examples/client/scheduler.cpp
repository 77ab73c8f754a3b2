#include <iostream>

#include <resourced/client/acquisition.hpp>

using namespace resourced;

struct Scheduler : client::AcquisitionObserver {
  text::IdSet busy;
  void on_allocations(const std::vector<client::Allocation>& allocations) override {
    for (const auto& allocation : allocations) busy |= allocation.resources.ranks();
  }
  void on_error(const Error& why) override { throw Error(why); }
};

int main(int argc, char** argv) try {
  client::Connection connection;
  Scheduler scheduler;
  client::AcquisitionOptions options;
  options.allocations = true;
  client::Acquisition acquisition(connection, scheduler, options);
  while ((acquisition.up() - scheduler.busy).empty()) connection.wait(client::Milliseconds(-1));

  const auto rank = (acquisition.up() - scheduler.busy).first();
  const auto node = acquisition.resources().copy_ranks({rank});
  const client::Allocation allocation{argc > 1 ? argv[1] : "job", node};
  client::alloc(connection, {allocation}, [&](const client::Response& answer) {
    if (!answer.ok()) throw Error(answer.error());
    std::cout << "allocated " << node.nodelist().encode() << std::endl;
    connection.stop();
  });
  connection.run();
} catch (const std::exception& error) {
  std::cerr << "scheduler: " << error.what() << '\n';
  return 1;
}
