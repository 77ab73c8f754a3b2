// Configurations that are refused: each error is one line that names file, line and key.
#include <filesystem>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/toml_text.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::Failure;
using resourced::test::failure_of;
using resourced::test::TempDir;

namespace {

/// Loads this text, configuration and inventory; returns its error without the directory of the file.
Failure failure_of_text(const std::string& text) {
  const TempDir dir;
  const std::string file = dir.write("c.toml", text);
  Failure failure = failure_of([&] {
    const Config config = load(file);
    static_cast<void>(load_inventory(config));
  });
  for (std::size_t at; (at = failure.text.find(dir.path() + '/')) != std::string::npos;)
    failure.text.erase(at, dir.path().size() + 1);
  return failure;
}

const std::string one_host = "[[resource.config]]\nhosts = \"a[0-1]\"\ncores = \"0-3\"\n";

}  // namespace

TEST_CASE("text without its quotes gets a hint in plain words") {
  const struct {
    std::string line;
    std::string hint;
  } cases[] = {
      {"hosts = node[0-7]", R"(; text needs quotes: hosts = "node[0-7]")"},
      {"hosts = node[0-7] # ours", R"(; text needs quotes: hosts = "node[0-7]")"},
      {"hosts=node1,node2", R"(; text needs quotes: hosts = "node1,node2")"},
      {"cores = 0-31", R"(; text needs quotes: cores = "0-31")"},
      {"cores = 0,2", R"(; text needs quotes: cores = "0,2")"},
      {"properties = [batch, gpu]", R"(; text needs quotes: properties = ["batch", "gpu"])"},
      {"hosts = \"node[0-7]", R"(; the quote is not closed: hosts = "node[0-7]")"},
      {"hosts = 'node[0-7]", R"(; the quote is not closed: hosts = 'node[0-7]')"},
      {"hosts = node[0-7]\"", R"(; text needs quotes: hosts = "node[0-7]")"},
      // Other mistakes of TOML, without a hint.
      {"[[resource.config", ""},
      {"hosts", ""},
      {"hosts =", ""},
      {"hosts = \"a\" \"b\"", ""},
  };
  for (const auto& [line, hint] : cases) {
    CAPTURE(line);
    const std::string error = failure_of_text("[[resource.config]]\n" + line + "\n").text;
    CAPTURE(error);
    CHECK(error.starts_with("c.toml:2:"));
    CHECK(error.ends_with(hint));
    CHECK((error.find("quote") != std::string::npos && error.find("; ") != std::string::npos) ==
          !hint.empty());
  }
}

TEST_CASE("a bad value is named by file, line and key") {
  const struct {
    std::string name;
    std::string text;
    std::string beginning;  // beginning of the message
  } cases[] = {
      // Text that is not TOML, then unknown keys at every level.
      {"a table header without a key", "[=]\n", "c.toml:1:2: "},
      {"a letter after a key", "'a'\u048a = 1\n", "c.toml:1:4: "},

      {"unknown table", "\n[acess]\n", "c.toml:2: acess: unknown table, the nearest known one is access"},
      {"unknown scalar at the top", "x = 1\n", "c.toml:1: x: unknown table"},
      {"unknown key in resource", "[resource]\nexclud = \"0\"\n", "c.toml:2: resource.exclud: unknown key"},
      {"unknown key in an entry", one_host + "core = \"0\"\n",
       "c.toml:4: resource.config[0].core: unknown key, not one of hosts, cores, gpus, properties"},
      {"unknown key in verify", "[resource]\nverify = {cores = \"strict\"}\n",
       "c.toml:2: resource.verify.cores: unknown key"},
      {"unknown key in bus", "[bus]\nport = 1\n", "c.toml:2: bus.port: unknown key"},
      {"unknown key in store", "[store]\ndir = 'x'\n", "c.toml:2: store.dir: unknown key"},
      {"unknown key in log", "[log]\nfile = 'x'\n", "c.toml:2: log.file: unknown key"},
      {"unknown key in acquire", "[acquire]\npart = 1\n", "c.toml:2: acquire.part: unknown key"},
      {"unknown key in a partition", "[[acquire.partition]]\nname = 'a'\ntarget = '0'\n",
       "c.toml:3: acquire.partition[0].target: unknown key"},
      {"a key with a newline stays on one line", "\"a\\nb\" = 1\n", "c.toml:1: \"a\\x0ab\": unknown table"},

      // Wrong types.
      {"resource is no table", "resource = 1\n", "c.toml:1: resource: must be a table, not an integer"},
      {"config is no array", "[resource.config]\nhosts = \"a\"\n",
       "c.toml:1: resource.config: must be an array, not a table"},
      {"config holds no tables", "[resource]\nconfig = [\n  \"a\"]\n",
       "c.toml:3: resource.config[0]: must be a table, not a string"},
      {"hosts is no string", "[[resource.config]]\nhosts = [\"a\"]\n",
       "c.toml:2: resource.config[0].hosts: must be a hostlist in a string, not an array"},
      {"cores is a number", "[[resource.config]]\nhosts = \"a\"\ncores = 4\n",
       "c.toml:3: resource.config[0].cores: must be an idset in a string, not an integer"},
      {"properties is a string", one_host + "properties = \"x\"\n",
       "c.toml:4: resource.config[0].properties: must be an array, not a string"},
      {"a property is a number", one_host + "properties = [\"x\",\n 1]\n",
       "c.toml:5: resource.config[0].properties[1]: must be a string, not an integer"},
      {"exclude is a number", "[resource]\nexclude = 0\n",
       "c.toml:2: resource.exclude: must be a string, not an integer"},
      {"a boolean is text", "[resource]\nnoverify = \"yes\"\n",
       "c.toml:2: resource.noverify: must be true or false, not a string"},
      {"journal-max is no integer", "[resource]\njournal-max = 1.5\n",
       "c.toml:2: resource.journal-max: must be an integer, not a number"},
      {"a date", "[resource]\npath = 2024-01-01\n",
       "c.toml:2: resource.path: must be a string, not a date or a time"},
      {"verify is a string", "[resource]\nverify = \"strict\"\n",
       "c.toml:2: resource.verify: must be true, false or a table"},
      {"a duration is an array", "[store]\nhistory = []\n", "c.toml:2: store.history: must be a duration"},
      {"listen is a string", "[bus]\nlisten = \"ipc:///a\"\n",
       "c.toml:2: bus.listen: must be an array, not a string"},

      // Bad values.
      {"cores run backwards", one_host + "[[resource.config]]\nhosts = \"b\"\n\ncores = \"3-1\"\n",
       "c.toml:7: resource.config[1].cores: \"3-1\" is not an idset"},
      {"gpus", one_host + "gpus = \"x\"\n", "c.toml:4: resource.config[0].gpus: \"x\" is not an idset"},
      {"hosts", "[[resource.config]]\nhosts = \"a[3-1]\"\ncores = \"0\"\n",
       "c.toml:2: resource.config[0].hosts: "},
      {"hosts is missing", "[resource]\n\n[[resource.config]]\ncores = \"0\"\n",
       "c.toml:3: resource.config[0].hosts: is missing"},
      {"hosts is empty", "[[resource.config]]\nhosts = \"\"\ncores = \"0\"\n",
       "c.toml:2: resource.config[0].hosts: names no host"},
      {"config is empty", "[resource]\nconfig = []\n", "c.toml:2: resource.config: is empty"},
      {"property name", one_host + "properties = [\"ok\", \"a|b\"]\n",
       "c.toml:4: resource.config[0].properties: \"a|b\": "},
      {"journal-max of 0", "[resource]\njournal-max = 0\n",
       "c.toml:2: resource.journal-max: 0 is not from 1 to 1000000000"},
      {"size of 0", "[resource]\nsize = 0\n", "c.toml:2: resource.size: 0 is not from 1 to"},
      {"empty path", "[resource]\npath = \"\"\n", "c.toml:2: resource.path: is empty"},
      {"path with a zero byte", "[resource]\npath = \"a\\u0000b\"\n",
       "c.toml:2: resource.path: holds a control character"},
      {"verify mode", "[resource.verify]\ncore = \"lax\"\n",
       "c.toml:2: resource.verify.core: \"lax\" is none of strict, allow-extra, allow-missing, ignore"},
      {"scheme", "[bus]\nlisten = [\"udp://x\"]\n",
       "c.toml:2: bus.listen: \"udp://x\" does not begin with ipc://, tcp:// or local://"},
      {"no scheme", "[bus]\nlisten = [\"/tmp/bus\"]\n",
       "c.toml:2: bus.listen: \"/tmp/bus\" does not begin with"},
      {"no address", "[bus]\nlisten = [\"ipc://\"]\n", "c.toml:2: bus.listen: \"ipc://\" has no address"},
      {"listen twice", "[bus]\nlisten = [\"ipc:///a\", \"ipc:///a\"]\n",
       "c.toml:2: bus.listen: \"ipc:///a\" is there twice"},
      {"hwm without limit", "[bus]\nsend-hwm = 0\n", "c.toml:2: bus.send-hwm: 0 is not from 1 to"},
      {"heartbeat of 0", "[bus]\nheartbeat-interval = 0\n",
       "c.toml:2: bus.heartbeat-interval: 0s is not from 1ms to"},
      {"endless heartbeat", "[bus]\nheartbeat-timeout = \"inf\"\n",
       "c.toml:2: bus.heartbeat-timeout: infs is not from"},
      {"timeout below interval", "[bus]\nheartbeat-timeout = \"1s\"\n",
       "c.toml:2: bus.heartbeat-timeout: the heartbeat-timeout of 1000ms is shorter than the "
       "heartbeat-interval of 5000ms"},
      {"interval above timeout", "[bus]\nheartbeat-interval = \"20s\"\n",
       "c.toml:2: bus.heartbeat-interval: the heartbeat-timeout of 15000ms is shorter"},
      {"message size", "[bus]\nmax-message-size = 1\n", "c.toml:2: bus.max-message-size: 1 is not from"},
      {"duration", "[store]\nhistory = \"5x\"\n", "c.toml:2: store.history: "},
      {"negative duration", "[store]\nhistory = -1\n", "c.toml:2: store.history: -1 is not a duration"},
      {"duration that is no number", "[store]\nhistory = nan\n",
       "c.toml:2: store.history: nan is not a duration"},
      {"log level", "[log]\nlevel = \"loud\"\n", "c.toml:2: log.level: \"loud\" is not a log level"},
      {"partition without a name", "\n[[acquire.partition]]\ntargets = '0'\n",
       "c.toml:2: acquire.partition[0].name: is missing"},
      {"partition with an empty name", "[[acquire.partition]]\nname = ''\ntargets = '0'\n",
       "c.toml:2: acquire.partition[0].name: is empty"},
      {"partition of nothing", "[[acquire.partition]]\nname = 'a'\n",
       "c.toml:1: acquire.partition[0]: must have either targets or constraint"},
      {"partition of both", "[[acquire.partition]]\nname = 'a'\ntargets = '0'\nconstraint = 'x'\n",
       "c.toml:1: acquire.partition[0]: must have either targets or constraint"},
      {"partition names repeat",
       "[[acquire.partition]]\nname = 'a'\ntargets = '0'\n[[acquire.partition]]\nname = 'a'\ntargets = '1'\n",
       "c.toml:5: acquire.partition[1].name: \"a\" is the name of an earlier partition"},
      {"partition constraint", "[[acquire.partition]]\nname = 'a'\nconstraint = 'x&('\n",
       "c.toml:3: acquire.partition[0].constraint: "},

      // Errors that are found when the inventory is loaded.
      {"host without cores or gpus",
       one_host + "[[resource.config]]\nhosts = \"a0,b[1-2]\"\nproperties = [\"x\"]\n",
       "c.toml:4: resource.config[1]: host \"b1\" has no cores"},
      {"unknown host excluded", "[resource]\nexclude = \"a0,zz\"\n" + one_host,
       "c.toml:2: resource.exclude: unknown host: zz"},
      {"unknown rank excluded", "[resource]\nexclude = \"0-2\"\n" + one_host,
       "c.toml:2: resource.exclude: idset is out of range"},

      // Invalid TOML.
      {"syntax", "[resource]\n\npath = \n", "c.toml:3:8: "},
      {"key twice", "[log]\nlevel = \"info\"\nlevel = \"info\"\n", "c.toml:3:"},
      {"not UTF-8", "[log]\nlevel = \"\xff\"\n", "c.toml:2:"},
      {"string without an end", "[log]\nlevel = \"info\n", "c.toml:2:"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const Failure failure = failure_of_text(c.text);
    CHECK(failure.errnum == EINVAL);
    CHECK(failure.text.substr(0, c.beginning.size()) == c.beginning);
    CHECK(failure.text.find('\n') == std::string::npos);
  }
}

TEST_CASE("a configuration without an inventory says so") {
  const Failure failure = failure_of_text("[log]\n");
  CHECK(failure.errnum == ENOENT);
  CHECK(failure.text == "no inventory: neither resource.config nor resource.path is configured");
}

TEST_CASE("an R file's errors name the key, the R file and the path inside") {
  const TempDir dir;
  const std::string file = dir.write("c.toml", "[resource]\npath = \"R\"\n");
  const auto load_failure = [&] {
    return failure_of([&] { static_cast<void>(load_inventory(load(file))); });
  };
  const std::string place = file + ":2: resource.path: " + dir.file("R") + ": ";

  SUBCASE("not there") {
    CHECK(load_failure().errnum == ENOENT);
    CHECK(load_failure().text == place + "No such file or directory");
  }
  SUBCASE("a directory") {
    dir.write("R/x", "");
    CHECK(load_failure().errnum == EISDIR);
    CHECK(load_failure().text == place + "Is a directory");
  }
  SUBCASE("not JSON") {
    dir.write("R", "{");
    CHECK(load_failure().errnum == EINVAL);
    CHECK(load_failure().text.starts_with(place));
  }
  SUBCASE("not an R") {
    dir.write(
        "R",
        R"({"version":1,"execution":{"R_lite":[{"rank":"3-1","children":{"core":"0"}}],"nodelist":["a"]}})");
    CHECK(load_failure().text.starts_with(place + "execution.R_lite[0].rank: \"3-1\" is not an idset"));
  }
}

TEST_CASE("the scheduling file's errors name the key and the file") {
  const TempDir dir;
  const std::string file = dir.write("c.toml", "[resource]\nscheduling = \"s\"\n" + one_host);
  const auto load_failure = [&] {
    return failure_of([&] { static_cast<void>(load_inventory(load(file))); });
  };
  const std::string place = file + ":2: resource.scheduling: " + dir.file("s") + ": ";

  SUBCASE("not there") { CHECK(load_failure().text == place + "No such file or directory"); }
  SUBCASE("not JSON") {
    dir.write("s", "{]");
    CHECK(load_failure().errnum == EINVAL);
    CHECK(load_failure().text == place + "is not JSON (at byte 2)");
  }
  SUBCASE("more behind the value") {
    dir.write("s", "{} {}");
    CHECK(load_failure().text == place + "is not JSON (at byte 4)");
  }
  SUBCASE("not UTF-8") {
    dir.write("s", "{\"\xff\": 1}");
    CHECK(load_failure().errnum == EINVAL);
    CHECK(load_failure().text == place + "is not UTF-8 (at byte 3)");
  }
  SUBCASE("nested too deep for an R") {
    const auto nested = [](std::size_t levels) {
      return R"({"x": )" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
    };
    dir.write("s", nested(rset::ResourceSet::max_depth - 1));
    CHECK_NOTHROW(static_cast<void>(load_inventory(load(file))));
    dir.write("s", nested(rset::ResourceSet::max_depth));
    CHECK(load_failure().errnum == EINVAL);
    CHECK(load_failure().text == place + "is nested deeper than 64 levels");
  }
  SUBCASE("a number beyond a double") {
    dir.write("s", R"({"x": 1e999})");
    CHECK(load_failure().errnum == EINVAL);
    CHECK(load_failure().text == place + "holds a number that is out of range");
  }
  SUBCASE("not an object") {
    dir.write("s", "[]");
    CHECK(load_failure().errnum == EINVAL);
    CHECK(load_failure().text.starts_with(place));
  }
  SUBCASE("nested without end") {
    dir.write("s", R"({"graph":)" + std::string(100000, '[') + std::string(100000, ']') + "}");
    CHECK(load_failure().errnum == EINVAL);
    CHECK(load_failure().text.starts_with(place));
  }
}

TEST_CASE("what cannot be read is named with its errno") {
  const TempDir dir;
  const auto load_failure = [&](const std::string& path) {
    return failure_of([&] { static_cast<void>(load(path)); });
  };
  SUBCASE("no such file") {
    const Failure failure = load_failure(dir.file("none"));
    CHECK(failure.errnum == ENOENT);
    CHECK(failure.text == dir.file("none: No such file or directory"));
  }
  SUBCASE("a directory without *.toml") {
    dir.write("a.conf", "");
    CHECK(load_failure(dir.path()).errnum == ENOENT);
    CHECK(load_failure(dir.path()).text == dir.path() + ": holds no *.toml file");
  }
  SUBCASE("a directory that is called like a file") {
    dir.write("x.toml/y", "");
    CHECK(load_failure(dir.path()).errnum == EISDIR);
    CHECK(load_failure(dir.path()).text == dir.file("x.toml: Is a directory"));
  }
  SUBCASE("a FIFO, without waiting for a writer") {
    REQUIRE(::mkfifo(dir.file("f.toml").c_str(), 0600) == 0);
    CHECK(load_failure(dir.file("f.toml")).errnum == EINVAL);
    CHECK(load_failure(dir.file("f.toml")).text == dir.file("f.toml: is not a regular file"));
  }
  SUBCASE("a file that may not be read") {
    const std::string file = dir.write("c.toml", "");
    REQUIRE(::chmod(file.c_str(), 0) == 0);
    if (::geteuid() != 0) {
      CHECK(load_failure(file).errnum == EACCES);
      CHECK(load_failure(file).text == file + ": Permission denied");
    }
  }
  SUBCASE("a file that is too large") {
    const std::string file = dir.write("c.toml", "");
    std::filesystem::resize_file(file, (std::size_t{16} << 20) + 1);
    CHECK(load_failure(file).errnum == EFBIG);
  }
  SUBCASE("files that are too large together") {
    for (const char* name : {"a.toml", "b.toml", "c.toml"})
      dir.write(name, "#" + std::string(std::size_t{6} << 20, ' '));
    CHECK(load_failure(dir.path()).errnum == EFBIG);
    CHECK(load_failure(dir.path()).text == dir.path() + ": holds more than 16777216 bytes of TOML");
  }
}

TEST_CASE("nesting is bounded") {
  const auto repeat = [](std::string_view part, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += part;
    return text;
  };
  const std::string deep[] = {
      repeat("a.", 1000000) + "b = 1\n",
      "[" + repeat("a.", 1000000) + "b]\n",
      repeat("\"a\".", 1000000) + "b = 1\n",
      repeat("'x' . ", 100) + "b = 1\n",
      "a = " + repeat("[", 1000000) + "\n",
      "a = " + repeat("{a=", 1000000) + "\n",
      "a = {" + repeat("a.", 100) + "b = 1}\n",
      "a = '''\n''' # '''\n" + repeat("a.", 100) + "b = 1\n",
      "a = \"\\\"\" # \"\n" + repeat("a.", 100) + "b = 1\n",
      "a = \"\"\"x\"\"\"\"\"\n" + repeat("a.", 100) + "b = 1\n",
  };
  for (const std::string& text : deep) {
    CAPTURE(text.substr(0, 40));
    const Failure failure = failure_of_text(text);
    CHECK(failure.errnum == EINVAL);
    CHECK(failure.text.starts_with("c.toml:"));
    CHECK(failure.text.size() < 500);
  }
}

TEST_CASE("dots that nest nothing are not counted") {
  const std::string dots(100, '.');
  const std::string shallow[] = {
      "# " + dots + "\n",
      "a = \"" + dots + "\"\n",
      "a = '" + dots + "' # " + dots + "\n",
      "a = \"\"\"\n\"" + dots + "\"\"" + dots + "\"\"\"\n",
      "a = '''" + dots + "\n''" + dots + "'''\n",
      "a = \"\\\"" + dots + "\"\n",
      "a = [1.5, 1.5, 1.5, 1.5]\n",
      "a.b.c = 1\nd.e.f = 1\n",
  };
  for (const std::string& text : shallow) {
    CAPTURE(text);
    CHECK_FALSE(find_deep_key(text, 3));
  }
  const auto deep = find_deep_key("a = 1\n\nb.c.d = 1\n", 1);
  REQUIRE(deep);
  CHECK(deep->line == 3);
  CHECK(deep->column == 4);
}
