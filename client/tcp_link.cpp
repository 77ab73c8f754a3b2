// A link to a host that may have several addresses. Each has a ZeroMQ socket of its own, and the next one is
// tried when an attempt has failed: libzmq itself would try the first address for ever.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/addresses.hpp"
#include "client/link.hpp"
#include "core/error.hpp"

namespace resourced::client {
namespace {

class TcpLink final : public Link::Impl {
 public:
  TcpLink(Link::Context& context, const std::string& uri, const ConnectionOptions& options,
          const std::optional<proto::KeyFile>& keys, Wakeup& wakeup)
      : context_(context),
        options_(options),
        keys_(keys),
        wakeup_(wakeup),
        endpoint_(proto::parse_endpoint(uri, proto::EndpointUse::connect)),
        look_up_(look_up(endpoint_)) {
    if (look_up_->is_over()) {
      addresses_ = look_up_->take();
      look_up_.reset();
      (void)connect_next();
    } else {
      wakeup_.add(look_up_->fd());
    }
  }

  ~TcpLink() override { end_look_up(); }

  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  bool send(const proto::Message& message) override { return link_->send(message); }

  bool send_last(const proto::Message& message, Milliseconds longest) override {
    return link_->send_last(message, longest);
  }

  std::optional<proto::Message> receive() override { return link_ ? link_->receive() : std::nullopt; }

  std::optional<Link::Event> next_event() override {
    if (look_up_) {
      if (!look_up_->is_over()) return std::nullopt;
      addresses_ = look_up_->take();
      end_look_up();
      if (!try_next()) return Link::Event::failed;
    }
    while (link_) {
      const auto event = link_->next_event();
      if (event != Link::Event::failed) return event;
      const ConnectFailure failure = link_->failure();
      if (failure_ == ConnectFailure::unreachable || is_final(failure)) failure_ = failure;
      if (is_final(failure) || !try_next()) return Link::Event::failed;
    }
    return std::nullopt;
  }

  bool ready(bool to_send) override {
    return look_up_ ? look_up_->is_over() : link_ != nullptr && link_->ready(to_send);
  }

  [[nodiscard]] ConnectFailure failure() const noexcept override { return failure_; }

  void set_linger(Milliseconds time) override {
    if (link_) link_->set_linger(time);
  }

 private:
  void end_look_up() {
    if (!look_up_) return;
    wakeup_.remove(look_up_->fd());
    look_up_.reset();
  }

  /// Starts to connect to the next address. Returns false if there is none. Throws Error as make_zmq_link().
  bool connect_next() {
    if (next_ == addresses_.list.size()) return false;
    proto::Endpoint endpoint = endpoint_;
    endpoint.host = addresses_.list[next_++].host;
    // The last address gets the rest of the time, which the caller watches.
    const bool is_last = next_ == addresses_.list.size();
    const auto count = static_cast<Milliseconds::rep>(addresses_.list.size());
    std::optional<Milliseconds> share;
    if (!is_last) share = options_.connect_timeout / count;
    link_ = make_zmq_link(context_, endpoint.uri(), options_, keys_, wakeup_, share);
    return true;
  }

  bool try_next() {
    try {
      return connect_next();
    } catch (const Error&) {
      return false;  // no descriptors left, for example
    }
  }

  Link::Context& context_;
  const ConnectionOptions& options_;
  const std::optional<proto::KeyFile>& keys_;
  Wakeup& wakeup_;
  proto::Endpoint endpoint_;
  /// The look-up, until it is complete.
  std::optional<LookUp> look_up_;
  Addresses addresses_;
  std::size_t next_ = 0;
  /// Link to the address that is tried; null before the look-up is complete, and if it has failed.
  std::unique_ptr<Link::Impl> link_;
  /// Failure at the first address where the cause is more than that no process listens, or at one where a
  /// daemon refuses.
  ConnectFailure failure_ = ConnectFailure::unreachable;
};

}  // namespace

std::unique_ptr<Link::Impl> make_tcp_link(Link::Context& context, const std::string& uri,
                                          const ConnectionOptions& options,
                                          const std::optional<proto::KeyFile>& keys, Wakeup& wakeup) {
  return std::make_unique<TcpLink>(context, uri, options, keys, wakeup);
}

}  // namespace resourced::client
