#include "fuzz.hpp"
#include "proto/local_frame.hpp"
#include "proto/message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    resourced::proto::LocalFrameDecoder decoder(std::size_t{1} << 20);
    decoder.feed(text);
    while (const auto parts = decoder.next()) {
      const auto message = resourced::proto::from_parts(*parts);
      const auto bytes = resourced::proto::encode_local_frame(message);
      resourced::proto::LocalFrameDecoder again(std::size_t{1} << 21);
      again.feed(bytes);
      const auto same = again.next();
      FUZZ_CHECK(same && resourced::proto::encode_local_frame(resourced::proto::from_parts(*same)) == bytes);
    }
  });
}
