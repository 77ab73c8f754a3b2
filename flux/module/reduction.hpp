// The resources of the brokers are reported upwards through their tree: each broker reports its own with
// those of all below it, once it has them.
#pragma once

#include <cstdint>

#include "core/rset/resource_set.hpp"
#include "flux/module/channel.hpp"
#include "proto/message.hpp"

namespace resourced::flux::module {

class Reduction {
 public:
  /// Starts with the resources of this rank. `size` is the number of ranks, with all below this one.
  Reduction(rset::ResourceSet own, std::uint32_t size) : resources_(std::move(own)), size_(size) {}

  /// Takes the report of another rank, a resource.topo-reduce request. Returns false for a repeated report,
  /// and for one that cannot be read, which is logged.
  bool take(const proto::Message& report, Channel& channel);
  /// Whether all ranks have reported.
  [[nodiscard]] bool is_complete() const noexcept { return count_ == size_; }
  /// Sends the report of this rank and those below it.
  void report(Channel& channel) const;
  [[nodiscard]] const rset::ResourceSet& resources() const noexcept { return resources_; }

 private:
  rset::ResourceSet resources_;
  std::uint32_t size_;
  std::uint32_t count_ = 1;
};

}  // namespace resourced::flux::module
