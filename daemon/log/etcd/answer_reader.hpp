// The answer of an endpoint, from its bytes as they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/system/error_code.hpp>

namespace resourced::daemon::log::etcd {

/// One answer. Its body may be taken in parts. After an error there is nothing more.
class AnswerReader {
 public:
  /// The body may have so many bytes, or any number.
  explicit AnswerReader(std::optional<std::uint64_t> most_bytes);
  ~AnswerReader();
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  AnswerReader(AnswerReader&&) = delete;
  AnswerReader& operator=(AnswerReader&&) = delete;

  /// Takes the next bytes, also those after the end.
  [[nodiscard]] boost::system::error_code put(std::string_view bytes);
  /// The same in steps: the header, or one chunk of the body. step() returns whether it took anything.
  void add(std::string_view bytes);
  [[nodiscard]] bool step(boost::system::error_code& error);
  /// There are no more bytes.
  [[nodiscard]] boost::system::error_code put_end();

  [[nodiscard]] bool is_done() const;
  /// 0 before the header is there.
  [[nodiscard]] unsigned status() const;
  /// Whether the connection can have another request. There is an answer.
  [[nodiscard]] bool keeps_alive() const;
  /// The bytes of the body that arrived since the last call.
  [[nodiscard]] std::string take_body();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace resourced::daemon::log::etcd
