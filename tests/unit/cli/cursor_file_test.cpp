// The cursor of `resourcectl eventlog`.
#include "cli/commands/cursor_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "temp_dir.hpp"

using resourced::cli::commands::CursorFile;

namespace resourced::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string refusal(const std::string& path) {
  try {
    const CursorFile cursor(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST_CASE("a cursor is read back, and is the only file that is left") {
  const TempDir directory;
  const std::string path = directory.file("cursor");
  CursorFile cursor(path);
  CHECK_FALSE(cursor.number());
  cursor.write(17);
  cursor.write(18);
  CHECK(text_of(path) == "{\"after\":18}\n");
  CHECK(CursorFile(path).number() == 18);
  const std::filesystem::directory_iterator files(std::filesystem::path(path).parent_path());
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("a file of another kind is refused, and stays as it is") {
  const TempDir directory;
  const std::string path = directory.file("cursor");
  for (const std::string text :
       {"", "17", "{}", R"({"after":-1})", R"({"after":1.5})", R"({"after":"1"})", R"({"after":1)",
        "\x7f"
        "ELF"}) {
    CAPTURE(text);
    std::ofstream(path) << text;
    CHECK(refusal(path) == path + ": not a cursor of eventlog; remove the file to begin anew");
    CHECK(text_of(path) == text);
  }
  std::ofstream(path) << std::string(5000, ' ');
  CHECK(refusal(path).starts_with(path + ": "));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(refusal(path).starts_with(path + ": "));
}

TEST_CASE("a directory that is not there is found before anything is printed") {
  const TempDir directory;
  CHECK(refusal(directory.file("none") + "/cursor") ==
        directory.file("none") + "/cursor: No such file or directory");
}

}  // namespace
}  // namespace resourced::test
