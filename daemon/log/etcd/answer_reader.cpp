#include "daemon/log/etcd/answer_reader.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace resourced::daemon::log::etcd {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

// A line of the header, or of a chunk, is not read before it is whole.
constexpr std::size_t most_unread = std::size_t{64} << 10;

}  // namespace

struct AnswerReader::State {
  http::response_parser<http::string_body> parser;
  /// What the parser has not taken yet.
  std::string unread;
};

AnswerReader::AnswerReader(std::optional<std::uint64_t> most_bytes) : state_(std::make_unique<State>()) {
  state_->parser.eager(true);
  if (most_bytes) {
    state_->parser.body_limit(*most_bytes);
  } else {
    state_->parser.body_limit(boost::none);
  }
}

AnswerReader::~AnswerReader() = default;

error_code AnswerReader::put(std::string_view bytes) {
  auto& [parser, unread] = *state_;
  unread.append(bytes);
  error_code error;
  while (!unread.empty() && !parser.is_done()) {
    const std::size_t taken = parser.put(boost::asio::buffer(unread), error);
    unread.erase(0, taken);
    if (error || taken == 0) break;
  }
  if (error == http::error::need_more) error = {};
  if (!error && !parser.is_done() && unread.size() > most_unread) return http::error::buffer_overflow;
  return error;
}

error_code AnswerReader::put_end() {
  if (!state_->parser.got_some()) return http::error::end_of_stream;
  error_code error;
  state_->parser.put_eof(error);
  return error;
}

bool AnswerReader::is_done() const { return state_->parser.is_done(); }

unsigned AnswerReader::status() const {
  return state_->parser.is_header_done() ? state_->parser.get().result_int() : 0;
}

bool AnswerReader::keeps_alive() const { return state_->parser.keep_alive() && state_->unread.empty(); }

std::string AnswerReader::take_body() { return std::exchange(state_->parser.get().body(), {}); }

}  // namespace resourced::daemon::log::etcd
