#include "flux/keeper/attacher.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "flux/link/attach.hpp"
#include "os/file.hpp"

namespace resourced::flux::keeper {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// Time limit for the answer of a service whose loop is busy.
constexpr std::chrono::seconds longest_answer{10};
constexpr std::size_t longest_line = 4096;

[[noreturn]] void fail_call(const char* call) {
  throw std::system_error(errno, std::system_category(), call);
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    fail_call("connect");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Attacher::Attacher(asio::io_context& loop, std::string path, int welcome, Callbacks callbacks)
    : loop_(loop),
      path_(std::move(path)),
      welcome_(welcome),
      callbacks_(std::move(callbacks)),
      socket_(loop),
      link_(loop),
      limit_(loop) {}

void Attacher::attach(std::uint8_t generation, bool is_first) {
  try {
    pass(generation, is_first);
    await_answer();
  } catch (const std::system_error& error) {
    asio::post(loop_, [this, why = std::string(error.code().message())] { fail(why); });
  }
}

void Attacher::pass(std::uint8_t generation, bool is_first) {
  const sockaddr_un address = address_of(path_);
  os::Descriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connection.get() < 0) fail_call("socket");
  // connect(2) does not wait: it fails with EAGAIN while too many others wait to be accepted.
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    fail_call("connect");
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_call("socketpair");
  os::Descriptor own(ends[0]);
  const os::Descriptor passed(ends[1]);
  link::send_attachment(connection.get(), passed.get(), welcome_, generation, is_first);
  socket_ = Socket(loop_, asio::local::stream_protocol(), connection.release());
  link_ = Socket(loop_, asio::local::stream_protocol(), own.release());
}

void Attacher::await_answer() {
  answer_.clear();
  limit_.expires_after(longest_answer);
  limit_.async_wait([this](const error_code& error) {
    error_code ignored;
    if (!error) socket_.cancel(ignored);
  });
  asio::async_read_until(socket_, asio::dynamic_buffer(answer_, longest_line), '\n',
                         [this](const error_code& error, std::size_t size) {
                           limit_.cancel();
                           if (error == asio::error::operation_aborted) return fail("no answer");
                           if (error) return fail("it has closed the connection");
                           error_code ignored;
                           socket_.close(ignored);
                           const std::string line = answer_.substr(0, size - 1);
                           if (line != link::attached) return fail(line);
                           callbacks_.attached(std::move(link_));
                         });
}

void Attacher::fail(const std::string& why) {
  error_code ignored;
  socket_.close(ignored);
  link_.close(ignored);
  callbacks_.failed(why);
}

}  // namespace resourced::flux::keeper
