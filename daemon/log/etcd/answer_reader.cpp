#include "daemon/log/etcd/answer_reader.hpp"

#include <limits>
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
  std::string bytes;
  /// So many of them the parser has taken.
  std::size_t taken = 0;

  [[nodiscard]] std::string_view unread() const { return std::string_view(bytes).substr(taken); }
};

AnswerReader::AnswerReader(std::optional<std::uint64_t> most_bytes) : state_(std::make_unique<State>()) {
  // One step at a time: Beast forgets that a body is too long if it takes some of it in the same step. It
  // also takes any length for too long if there is no limit at all.
  state_->parser.eager(false);
  state_->parser.body_limit(most_bytes.value_or(std::numeric_limits<std::uint64_t>::max()));
}

AnswerReader::~AnswerReader() = default;

error_code AnswerReader::put(std::string_view bytes) {
  add(bytes);
  error_code error;
  while (step(error)) {
  }
  return error;
}

void AnswerReader::add(std::string_view bytes) {
  state_->bytes.erase(0, std::exchange(state_->taken, 0)).append(bytes);
}

bool AnswerReader::step(error_code& error) {
  auto& parser = state_->parser;
  const std::string_view unread = state_->unread();
  error = {};
  if (unread.empty() || parser.is_done()) return false;
  const std::size_t taken = parser.put(boost::asio::buffer(unread.data(), unread.size()), error);
  state_->taken += taken;
  if (error == http::error::need_more) error = {};
  if (error || taken > 0) return !error;
  if (unread.size() > most_unread) error = http::error::buffer_overflow;
  return false;
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

bool AnswerReader::keeps_alive() const { return state_->parser.keep_alive() && state_->unread().empty(); }

std::string AnswerReader::take_body() { return std::exchange(state_->parser.get().body(), {}); }

}  // namespace resourced::daemon::log::etcd
