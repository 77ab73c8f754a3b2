// The text form of slurm.conf. That slurmctld reads the same is shown by tests/interop/slurm.
#include "cli/slurm/conf_lines.hpp"

#include <cerrno>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::cli::slurm {

namespace {

using Files = std::map<std::string, std::string>;

std::vector<ConfLine> read_files(const Files& files) {
  return read_conf("/etc/slurm/slurm.conf", [&files](const std::string& path) {
    const auto file = files.find(path);
    if (file == files.end()) throw Error(ENOENT, path + ": No such file or directory");
    return file->second;
  });
}

std::vector<ConfLine> read_text(const std::string& text) {
  return read_files({{"/etc/slurm/slurm.conf", text}});
}

/// The settings of all lines, `KEY=VALUE|KEY=VALUE` for each line.
std::vector<std::string> shown(const std::vector<ConfLine>& lines) {
  std::vector<std::string> texts;
  for (const ConfLine& line : lines) {
    std::string text;
    for (const Setting& setting : line.settings)
      text += (text.empty() ? "" : "|") + setting.key + "=" + setting.value;
    texts.push_back(text);
  }
  return texts;
}

/// The error of a text, without the path in front of it.
std::string error_of(const std::string& text) {
  try {
    (void)read_text(text);
  } catch (const Error& error) {
    const std::string what = error.what();
    REQUIRE(what.starts_with("/etc/slurm/slurm.conf:"));
    return what.substr(std::string_view("/etc/slurm/slurm.conf:").size());
  }
  return "no error";
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a line has settings with any number of blanks around them, and keys in any case") {
  CHECK(shown(read_text("NodeName=n1 CPUS = 4\tfeatures=a,b\r\n\n  ClusterName=c\n")) ==
        Texts{"nodename=n1|cpus=4|features=a,b", "clustername=c"});
  CHECK(shown(read_text("a=\"two words\" b=\"\" c=x=y")) == Texts{"a=two words|b=|c=x=y"});
}

TEST_CASE("a comment ends a line, also between quotes, unless a backslash is before it") {
  CHECK(shown(read_text("# a=1\nb=2 # c=3\nd=e#f\ng=h\\#i\n")) == Texts{"b=2", "d=e", "g=h#i"});
  CHECK(error_of("\nReason=\"bad # disk\"\n") ==
        "2: a quote without an end; # begins a comment also between quotes");
}

TEST_CASE("a backslash at its end continues a line, and nothing stands in for it") {
  const auto lines = read_text("a=1 \\\n  b=2\nc=one\\\ntwo\nd=3 # e \\\nf=4\ng=5 \\");
  CHECK(shown(lines) == Texts{"a=1|b=2", "c=onetwo", "d=3", "f=4", "g=5"});
  CHECK(lines[1].place == "/etc/slurm/slurm.conf:3");
  CHECK(lines[2].place == "/etc/slurm/slurm.conf:5");
}

TEST_CASE("included files are read in place, from the directory of the first file") {
  const auto lines = read_files({{"/etc/slurm/slurm.conf", "a=1\nInclude sub/nodes.conf # all\nd=4\n"},
                                 {"/etc/slurm/sub/nodes.conf", "b=2\ninclude  /srv/more.conf\nincluded=x"},
                                 {"/srv/more.conf", "\nc=3"}});
  CHECK(shown(lines) == Texts{"a=1", "b=2", "c=3", "included=x", "d=4"});
  CHECK(lines[2].place == "/srv/more.conf:2");
}

TEST_CASE("an include that fails is named by its place") {
  CHECK(error_of("a=1\ninclude gone.conf") == "2: /etc/slurm/gone.conf: No such file or directory");
  CHECK(error_of("\ninclude slurm.conf") == "2: files include each other, or are too deep");
  CHECK_THROWS_WITH_AS((void)read_files({{"/etc/slurm/slurm.conf", "include b"}, {"/etc/slurm/b", "\n\nx"}}),
                       "/etc/slurm/b:3: expected KEY=VALUE, found \"x\"", Error);
}

TEST_CASE("text that is no setting is refused with file and line") {
  CHECK(error_of("NodeName") == "1: expected KEY=VALUE, found \"NodeName\"");
  CHECK(error_of("a=1\n\nCPUs+=2") == "3: expected KEY=VALUE, found \"CPUs+=2\"");
  CHECK(error_of("=2") == "1: expected KEY=VALUE, found \"=2\"");
  CHECK(error_of("a=\"b\"c") == "1: expected a blank behind the quotes of \"b\"");
  CHECK(error_of("a=\"b") == "1: a quote without an end; # begins a comment also between quotes");
  CHECK(error_of("\x1b[2J=1") == "1: expected KEY=VALUE, found \"\\x1b[2J=1\"");
  CHECK(error_of("Reason=\"caf\xe9\"") == "1: the line is not UTF-8");
  CHECK(error_of(std::string("\0a=1", 4)) == "1: expected KEY=VALUE, found \"\\x00a=1\"");
}

TEST_CASE("the text of all files together is bounded") {
  const std::string large(max_conf_text / 2 + 1, ' ');
  CHECK_THROWS_WITH_AS(
      (void)read_files({{"/etc/slurm/slurm.conf", "include a\ninclude a\n"}, {"/etc/slurm/a", large}}),
      "/etc/slurm/a: more than 67108864 bytes in all files", Error);
}

}  // namespace resourced::cli::slurm
