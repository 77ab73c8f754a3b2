// A scheduler that allocates, and keeps its allocations when the leader changes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "client/acquisition.hpp"
#include "client/allocations.hpp"
#include "cluster_node.hpp"

namespace resourced::e2e {

class Holder final : public client::AcquisitionObserver {
 public:
  /// Waits until the scheduler has acquired.
  explicit Holder(const std::string& uri) : connection_(uri), acquisition_(connection_, *this, options()) {
    until([&] { return times_ == 1; });
  }

  /// Allocates a whole node.
  void alloc(const std::string& id, std::uint32_t rank) { alloc_all({{id, rank}}); }
  /// Allocates a whole node for each id, in one request.
  void alloc_all(const std::vector<std::pair<std::string, std::uint32_t>>& nodes) {
    std::vector<client::Allocation> allocations;
    for (const auto& [id, rank] : nodes)
      allocations.push_back({id, inventory_.copy_ranks(text::IdSet{rank})});
    client::alloc(connection_, allocations, outcome());
  }
  void free(const std::string& id) { client::free(connection_, {id}, outcome()); }
  /// Waits for this many outcomes, and returns them: "" for a success, or the error's text.
  const std::vector<std::string>& outcomes(std::size_t count) {
    until([&] { return outcomes_.size() >= count; });
    return outcomes_;
  }
  /// Lets the connection send its requests and receive answers for a tenth of a second.
  void turn() { connection_.run_for(client::Milliseconds(100)); }
  /// Waits until the scheduler has acquired this many times; returns the allocations that it was told then.
  const std::vector<std::string>& acquired(int times) {
    until([&] { return times_ >= times; });
    return held_;
  }

  void on_resources(const rset::ResourceSet& resources, const text::IdSet& /*up*/) override {
    inventory_ = resources;
  }
  void on_allocations(const std::vector<client::Allocation>& allocations) override {
    held_.clear();
    for (const client::Allocation& allocation : allocations) held_.push_back(allocation.id);
    ++times_;
    connection_.stop();
  }
  void on_error(const Error& why) override { FAIL(why.what()); }

 private:
  static client::AcquisitionOptions options() {
    client::AcquisitionOptions options;
    options.allocations = options.wait_for_daemon = true;
    return options;
  }
  client::Connection::Handler outcome() {
    return [this](const client::Response& response) {
      outcomes_.emplace_back(response.ok() ? "" : response.error().what());
      connection_.stop();
    };
  }
  void until(const std::function<bool()>& condition) {
    const Deadline deadline(patience);
    while (!condition()) {
      REQUIRE_FALSE(deadline.passed());
      connection_.run_for(patience);
    }
  }

  client::Connection connection_;
  rset::ResourceSet inventory_;
  std::vector<std::string> held_;
  std::vector<std::string> outcomes_;
  int times_ = 0;
  client::Acquisition acquisition_;
};

}  // namespace resourced::e2e
