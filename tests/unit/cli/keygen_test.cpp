// resourcectl keygen, and --key.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/text/z85.hpp"
#include "proto/key_file.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using test::run;

namespace {

const std::string some_key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";

struct KeygenFixture {
  test::TempDir dir;
  std::string file = dir.file("login1.key");
};

}  // namespace

TEST_SUITE("keygen") {
  TEST_CASE_FIXTURE(KeygenFixture,
                    "makes a file that only its owner may read, and prints what the daemon wants") {
    const auto outcome = run({"keygen", file});
    REQUIRE(outcome.status == 0);
    CHECK(outcome.err.empty());
    const proto::KeyFile keys = proto::load_key_file(file);
    CHECK(keys.name == "login1");
    CHECK(keys.server_key.empty());
    CHECK(outcome.out == fmt::format("[[access.key]]\n"
                                     "name = \"login1\"\n"
                                     "public-key = \"{}\"\n"
                                     "roles = [\"user\"]\n",
                                     keys.public_key));
    CHECK(outcome.out.find(keys.secret_key) == std::string::npos);
  }

  TEST_CASE_FIXTURE(KeygenFixture, "each key is another one") {
    REQUIRE(run({"keygen", file}).status == 0);
    REQUIRE(run({"keygen", dir.file("b.key")}).status == 0);
    CHECK(proto::load_key_file(file).secret_key != proto::load_key_file(dir.file("b.key")).secret_key);
  }

  TEST_CASE_FIXTURE(KeygenFixture, "never takes the place of a file") {
    dir.write("login1.key", "precious");
    const auto outcome = run({"keygen", file});
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == fmt::format("resourcectl: {}: File exists\n", file));
  }

  TEST_CASE_FIXTURE(KeygenFixture, "takes the daemon's key as text or from a key file") {
    REQUIRE(run({"keygen", file, "--name", "alice", "--server-key", some_key}).status == 0);
    CHECK(proto::load_key_file(file).name == "alice");
    CHECK(proto::load_key_file(file).server_key == some_key);
    REQUIRE(run({"keygen", dir.file("b.key"), "--server-key", file}).status == 0);
    CHECK(proto::load_key_file(dir.file("b.key")).server_key == proto::load_key_file(file).public_key);

    CHECK(run({"keygen", dir.file("c.key"), "--server-key", "too-short"}).err ==
          "resourcectl: too-short: No such file or directory\n");
    CHECK(run({"keygen", dir.file("c.key")}).status == 0);
  }

  TEST_CASE_FIXTURE(KeygenFixture, "a name that configuration and logs cannot hold is wrong usage") {
    for (const std::string name : {"two words", "line\nend", "bell\a", "\xC3\xA9t\xC3\xA9"}) {
      CAPTURE(name);
      CHECK(run({"keygen", file, "--name", name}).status == 2);
    }
    CHECK(run({"keygen", file, "--name", std::string(65, 'x')}).status == 2);
    CHECK(run({"keygen"}).status == 2);
    const auto quoted = run({"keygen", file, "--name", R"(a"b\c)"});
    CHECK(quoted.out.find(R"(name = "a\"b\\c")") != std::string::npos);
  }

  TEST_CASE_FIXTURE(KeygenFixture,
                    "--key and $RESOURCED_KEY name the key file of a tcp bus, and of no other") {
    REQUIRE(run({"keygen", file}).status == 0);
    const std::string no_server_key = fmt::format(
        "resourcectl: {}: no server-key: the public key of the daemon is needed to connect "
        "(resourcectl keygen --server-key)\n",
        file);
    CHECK(run({"--uri", "tcp://127.0.0.1:1", "--key", file, "status"}).err == no_server_key);
    CHECK(run({"status", "--uri", "tcp://127.0.0.1:1", "--key", file}).err == no_server_key);
    setenv("RESOURCED_KEY", file.c_str(), 1);
    CHECK(run({"--uri", "tcp://127.0.0.1:1", "status"}).err == no_server_key);
    CHECK(run({"--uri", "ipc:///nonexistent/bus", "status"}).err ==
          "resourcectl: cannot reach the daemon at ipc:///nonexistent/bus: No such file or directory\n");
    unsetenv("RESOURCED_KEY");
  }

  TEST_CASE_FIXTURE(KeygenFixture, "a key that others may read is not used") {
    REQUIRE(run({"keygen", file, "--server-key", some_key}).status == 0);
    REQUIRE(chmod(file.c_str(), 0640) == 0);
    const auto outcome = run({"--uri", "tcp://127.0.0.1:1", "--key", file, "status"});
    CHECK(outcome.status == 1);
    CHECK(outcome.err ==
          fmt::format("resourcectl: {0}: others may read or change it (mode 0640): chmod 600 {0}\n", file));
  }

  TEST_CASE_FIXTURE(KeygenFixture, "halves of different pairs are not used") {
    REQUIRE(run({"keygen", file, "--server-key", some_key}).status == 0);
    proto::KeyFile keys = proto::load_key_file(file);
    keys.public_key = some_key;
    proto::create_key_file(dir.file("odd.key"), keys);
    CHECK(run({"--uri", "tcp://127.0.0.1:1", "--key", dir.file("odd.key"), "status"}).err ==
          fmt::format("resourcectl: {}: public-key and secret-key are not a pair\n", dir.file("odd.key")));
  }
}
