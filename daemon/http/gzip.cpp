#include "daemon/http/gzip.hpp"

#include <algorithm>

#include <boost/asio/post.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <zlib.h>

#include "core/error.hpp"
#include "core/invariant.hpp"

namespace resourced::daemon::http {
namespace {

std::string gzip(std::string_view text) {
  // 16 asks for the header of gzip.
  constexpr int window = MAX_WBITS + 16;
  constexpr int memory = 8;
  z_stream stream{};
  const int begun = deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window, memory, Z_DEFAULT_STRATEGY);
  RESOURCED_INVARIANT(begun == Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  // zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int ended = deflate(&stream, Z_FINISH);
  RESOURCED_INVARIANT(ended == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

bool takes_gzip(std::string_view accept_encoding) {
  namespace beast = boost::beast;
  const beast::http::ext_list codings({accept_encoding.data(), accept_encoding.size()});
  const auto is_zero = [](const auto& parameter) {
    return beast::iequals(parameter.first, "q") &&
           parameter.second.find_first_not_of("0.") == std::string_view::npos;
  };
  return std::any_of(codings.begin(), codings.end(), [&](const auto& coding) {
    return beast::iequals(coding.first, "gzip") &&
           std::none_of(coding.second.begin(), coding.second.end(), is_zero);
  });
}

bool Compressor::compress(std::string_view body, const proto::Payload& owner,
                          std::function<void(const proto::Payload&)> done) {
  // Fewer bytes fit into a packet.
  constexpr std::size_t least = 1400;
  if (body.size() < least) return false;
  if (last_->owner == owner) {
    done(last_->compressed);
    return true;
  }
  try {
    worker_.start();
  } catch (const Error&) {
    return false;
  }
  worker_.run([loop = loop_, weak = std::weak_ptr(last_), body, owner, done = std::move(done)]() mutable {
    const auto compressed = std::make_shared<const std::string>(gzip(body));
    // Nothing of the loop may end on this thread.
    boost::asio::post(loop, [weak, owner, compressed, done = std::move(done)] {
      const auto last = weak.lock();
      if (!last) return;
      *last = {owner, compressed};
      done(compressed);
    });
  });
  return true;
}

}  // namespace resourced::daemon::http
