// The one error type of the project. Bad input is thrown where it is found and turned into an RPC error
// response (RFC 6) or an exit status at the edge. Broken invariants are not errors: they assert.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)
namespace resourced {

/// A failure: an errno for the calling program (POSIX, Linux numbers), and one line of text for its user that
/// names the object at fault. A function that throws it has changed nothing.
class Error : public std::runtime_error {
 public:
  Error(int errnum, const std::string& text) : std::runtime_error(text), errnum_(errnum) {}

  [[nodiscard]] int errnum() const noexcept { return errnum_; }

 private:
  int errnum_;
};

}  // namespace resourced
#pragma GCC visibility pop
