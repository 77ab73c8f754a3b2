// Compresses bodies of responses as gzip (RFC 1952), for clients that take it (RFC 9110, 12.5.3).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include "os/thread.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::http {

/// Whether a field Accept-Encoding takes gzip.
[[nodiscard]] bool takes_gzip(std::string_view accept_encoding);

/// Compresses on a thread of its own, as a megabyte takes some milliseconds.
class Compressor {
 public:
  explicit Compressor(boost::asio::any_io_executor loop) : loop_(std::move(loop)) {}

  /// Compresses a part of `owner`, and calls done(compressed) from the loop; within this call for the owner
  /// that was the last one. Returns false for a body that is not worth it, and if there are no more threads.
  bool compress(std::string_view body, const proto::Payload& owner,
                std::function<void(const proto::Payload&)> done);

 private:
  struct Last {
    proto::Payload owner;
    proto::Payload compressed;
  };

  boost::asio::any_io_executor loop_;
  std::shared_ptr<Last> last_ = std::make_shared<Last>();
  os::Worker worker_;
};

}  // namespace resourced::daemon::http
