#include "proto/key_file.hpp"

#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "skipped.hpp"
#include "temp_dir.hpp"

namespace resourced::proto {
namespace {

// Key pairs from ZeroMQ's own documentation.
const std::string client_public = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
const std::string client_secret = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";
const std::string server_public = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";

const KeyFile client_keys{"login1", client_public, client_secret, server_public};

Error error_of(const std::string& path) {
  try {
    (void)load_key_file(path);
  } catch (const Error& error) {
    return error;
  }
  return {0, "no error"};
}

TEST_CASE("a key file that was made is read again") {
  const resourced::test::TempDir dir;
  const std::string path = dir.file("client.key");
  create_key_file(path, client_keys);
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0600);

  const KeyFile read = load_key_file(path);
  CHECK(read.name == "login1");
  CHECK(read.public_key == client_public);
  CHECK(read.secret_key == client_secret);
  CHECK(read.server_key == server_public);
  CHECK(load_public_key(path) == client_public);
}

TEST_CASE("the file of a daemon has no server-key") {
  const KeyFile read = parse_key_file(format_key_file({"d", client_public, client_secret, ""}), "file");
  CHECK(read.server_key.empty());
}

TEST_CASE("a key file never takes the place of something") {
  const resourced::test::TempDir dir;
  const std::string path = dir.write("client.key", "precious");
  CHECK_THROWS_WITH_AS(create_key_file(path, client_keys), (path + ": File exists").c_str(), Error);
  const std::string link = dir.file("link");
  REQUIRE(symlink((dir.path() + "/nowhere").c_str(), link.c_str()) == 0);
  CHECK_THROWS_WITH_AS(create_key_file(link, client_keys), (link + ": File exists").c_str(), Error);
  CHECK_THROWS_AS(create_key_file(dir.file("no/such/directory"), client_keys), Error);
}

TEST_CASE("a key that others may read or change is refused") {
  const resourced::test::TempDir dir;
  const std::string path = dir.write("client.key", format_key_file(client_keys));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0610U, 0601U, 0644U, 0660U, 0777U}) {
    CAPTURE(mode);
    REQUIRE(chmod(path.c_str(), mode) == 0);
    const Error error = error_of(path);
    CHECK(error.errnum() == EACCES);
    CHECK(std::string(error.what()) ==
          fmt::format("{0}: others may read or change it (mode {1:04o}): chmod 600 {0}", path, mode));
    // The public key may be read by others.
    CHECK(load_public_key(path) == client_public);
  }
  for (const mode_t mode : {0600U, 0400U}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(load_key_file(path).name == "login1");
  }
}

TEST_CASE("a key of another user's is refused") {
  if (geteuid() != 0) return test::say_skipped("root");  // only root can give a file away
  const resourced::test::TempDir dir;
  const std::string path = dir.file("client.key");
  create_key_file(path, client_keys);
  REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
  const Error error = error_of(path);
  CHECK(error.errnum() == EACCES);
  CHECK(std::string(error.what()) == path + ": belongs to uid 12345, not to uid 0");
}

TEST_CASE("only a small regular file can be one") {
  const resourced::test::TempDir dir;
  const auto refused = [&](const std::string& path, int errnum, std::string_view text) {
    const Error error = error_of(path);
    CHECK(error.errnum() == errnum);
    CHECK(std::string(error.what()) == fmt::format("{}: {}", path, text));
  };
  refused(dir.path(), EINVAL, "not a regular file");
  refused(dir.file("none"), ENOENT, "No such file or directory");
  REQUIRE(mkfifo(dir.file("fifo").c_str(), 0600) == 0);
  refused(dir.file("fifo"), EINVAL, "not a regular file");
  const std::string text = format_key_file(client_keys);
  const auto write = [&](const char* name, std::size_t size) {
    const std::string path = dir.write(name, text + std::string(size - text.size(), ' '));
    REQUIRE(chmod(path.c_str(), 0600) == 0);
    return path;
  };
  CHECK(load_key_file(write("large", max_key_file)).name == "login1");
  refused(write("larger", max_key_file + 1), EFBIG, "too large for a key file");
}

TEST_CASE("what is wrong with a key file is said with its key, and without its secret") {
  struct Case {
    const char* text;
    const char* error;
  };
  const std::vector<Case> cases = {
      {"", "not a key file (a JSON object)"},
      {"[]", "not a key file (a JSON object)"},
      {"{", "not a key file (a JSON object)"},
      {"{\"name\": \"\xff\"}", "not a key file (a JSON object)"},
      {"{}", "name: missing"},
      {R"({"name": 1})", "name: not a string"},
      {R"({"name": "a"})", "public-key: missing"},
      {R"({"name": "a", "public-key": "short"})", "public-key: not a key (40 characters of Z85)"},
      {R"({"name": "a", "public-key": "PUBLIC"})", "secret-key: missing"},
      {R"({"name": "a", "public-key": "PUBLIC", "secret-key": "PUBLI\""})",
       "secret-key: not a key (40 characters of Z85)"},
      {R"({"name": "a", "public-key": "PUBLIC", "secret-key": "PUBLIC", "server-key": null})",
       "server-key: not a string"},
      {R"({"name": "a", "public-key": "PUBLIC", "secret-key": "PUBLIC", "server_key": "PUBLIC"})",
       "\"server_key\": no such key"},
  };
  for (const Case& one : cases) {
    std::string text = one.text;
    for (auto at = text.find("PUBLIC"); at != std::string::npos; at = text.find("PUBLIC")) {
      text.replace(at, 6, server_public);
    }
    CAPTURE(text);
    CHECK_THROWS_WITH_AS((void)parse_key_file(text, "k"), (std::string("k: ") + one.error).c_str(), Error);
  }
  CHECK_THROWS_AS((void)parse_key_file(std::string(max_key_file, '['), "k"), Error);
}

}  // namespace
}  // namespace resourced::proto
