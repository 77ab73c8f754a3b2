// A stream that writes ASCII, whatever is written to it: for a locale without UTF-8.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace resourced::cli::screen {

class AsciiBuffer : public std::streambuf {
 public:
  explicit AsciiBuffer(std::ostream& out) : out_(out) {}

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type byte) override;
  int sync() override;

 private:
  /// Passes complete characters on. Returns whether they could be written.
  bool pass_on();

  std::ostream& out_;
  /// The rest of the text: a character of several bytes may arrive in several pieces.
  std::string pending_;
};

/// Passes text on to another stream with each character beyond ASCII as its escape (views::to_ascii). Bytes
/// that are not UTF-8 become the escape of U+FFFD.
class AsciiOutput : public std::ostream {
 public:
  explicit AsciiOutput(std::ostream& out) : std::ostream(nullptr), buffer_(out) { rdbuf(&buffer_); }

 private:
  AsciiBuffer buffer_;
};

}  // namespace resourced::cli::screen
