// Whole files of bounded size, and errors of files that cannot be read.
#include "os/file.hpp"

#include <cerrno>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>

#include "core/error.hpp"
#include "skipped.hpp"
#include "temp_dir.hpp"

namespace resourced::os {
namespace {

using test::TempDir;

void check_refused(const std::string& path, std::size_t most, int errnum, const std::string& reason) {
  CAPTURE(path);
  try {
    (void)read_file(path, most);
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(error.errnum() == errnum);
    CHECK(error.what() == path + ": " + reason);
  }
}

bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

TEST_CASE("a descriptor is closed once, by its last owner") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  {
    Descriptor first(ends[0]);
    {
      const Descriptor second = std::move(first);
      CHECK(second.get() == ends[0]);
      CHECK(is_open(ends[0]));
    }
    CHECK_FALSE(is_open(ends[0]));
  }
  CHECK(is_open(ends[1]));
  const Descriptor other(ends[1]);
  CHECK(Descriptor(-1).get() == -1);
}

TEST_CASE("a file is read whole, up to a bound") {
  const TempDir dir;
  for (const std::size_t size : {0U, 1U, 4096U, 100000U}) {
    std::string content(size, 'x');
    if (size > 0) content.back() = '\0';
    const std::string path = dir.write("file", content);
    CHECK(read_file(path, size) == content);
    CHECK(read_file(path, size + 1) == content);
    if (size > 0)
      check_refused(path, size - 1, EFBIG, "is larger than " + std::to_string(size - 1) + " bytes");
    // An open file can be read twice.
    const InputFile file(path);
    CHECK(file.read(size) == content);
    CHECK(file.read(size) == content);
    CHECK(static_cast<std::size_t>(file.status().st_size) == size);
  }
}

TEST_CASE("a file is written whole, or the error names it") {
  const TempDir dir;
  const std::string path = dir.file("new");
  const std::string content(1000000, 'x');
  const auto refusal = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  {
    const Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK((::fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
    write_all(file, content, path);
  }
  sync(path);
  sync(dir.file(""));
  CHECK(read_file(path, content.size()) == content);
  CHECK(refusal([&] { (void)open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600); }) == path + ": File exists");
  CHECK(refusal([] { write_all(open_file("/dev/full", O_WRONLY), "x", "/dev/full"); }) ==
        "/dev/full: No space left on device");
  CHECK(refusal([&] { sync(dir.file("none")); }) == dir.file("none") + ": No such file or directory");
}

TEST_CASE("a file that has grown since it was opened, or that reports no size, is bounded too") {
  const TempDir dir;
  const std::string path = dir.write("file", "one");
  const InputFile file(path);
  std::ofstream(path, std::ios::app) << std::string(10000, 'x');
  CHECK(file.read(20000)->size() == 10003);
  CHECK_FALSE(file.read(10002));
  CHECK_FALSE(file.read(3));

  const std::string own_status = read_file("/proc/self/status", 1 << 20);
  CHECK(own_status.starts_with("Name:"));
  check_refused("/proc/self/status", 10, EFBIG, "is larger than 10 bytes");
}

TEST_CASE("anything but a regular file is refused without waiting") {
  const TempDir dir;
  check_refused(dir.file("none"), 1, ENOENT, "No such file or directory");
  check_refused(dir.path(), 1, EISDIR, "Is a directory");
  REQUIRE(::mkfifo(dir.file("fifo").c_str(), 0600) == 0);
  check_refused(dir.file("fifo"), 1, EINVAL, "is not a regular file");
  check_refused("/dev/zero", 1, EINVAL, "is not a regular file");
}

int refusal_of_secret(const std::string& path) {
  try {
    InputFile(path).require_secret();
    return 0;
  } catch (const Error& error) {
    return error.errnum();
  }
}

TEST_CASE("a secret may be read by its owner alone") {
  const TempDir dir;
  const std::string path = dir.write("key", "x");
  for (const auto& [mode, errnum] :
       {std::pair{0600U, 0}, {0400U, 0}, {0640U, EACCES}, {0604U, EACCES}, {0610U, EACCES}}) {
    CAPTURE(mode);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(refusal_of_secret(path) == errnum);
  }
}

TEST_CASE("what systemd hands to the service may show the mask of its access list") {
  const TempDir dir;
  const std::string path = dir.write("key", "x");
  REQUIRE(::setenv("CREDENTIALS_DIRECTORY", dir.path().c_str(), 1) == 0);
  REQUIRE(::chmod(path.c_str(), 0440) == 0);
  CHECK(refusal_of_secret(path) == 0);
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  CHECK(refusal_of_secret(path) == EACCES);
  REQUIRE(::unsetenv("CREDENTIALS_DIRECTORY") == 0);
  REQUIRE(::chmod(path.c_str(), 0440) == 0);
  CHECK(refusal_of_secret(path) == EACCES);
}

TEST_CASE("the group of a service may read a secret of root's") {
  if (::geteuid() != 0) return test::say_skipped("root");  // only root can become another user
  const TempDir dir;
  const std::string path = dir.write("key", "x");
  REQUIRE(::chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  REQUIRE(::chown(path.c_str(), 0, 12345) == 0);
  const auto as_service = [&](gid_t group) {
    REQUIRE(::setegid(group) == 0);
    REQUIRE(::seteuid(12345) == 0);
    const int errnum = refusal_of_secret(path);
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(::setegid(0) == 0);
    return errnum;
  };
  CHECK(as_service(12345) == 0);
  CHECK(as_service(54321) == EACCES);
  REQUIRE(::chmod(path.c_str(), 0660) == 0);
  CHECK(as_service(12345) == EACCES);
}

}  // namespace
}  // namespace resourced::os
