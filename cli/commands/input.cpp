// Reading whole inputs, see input.hpp.
#include "cli/commands/input.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <utility>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "core/error.hpp"
#include "core/rset/operations.hpp"

namespace resourced::cli::commands {

using rset::ResourceSet;

namespace {

constexpr std::string_view blanks = " \t\r\n";

/// Returns the end of the JSON object that the text begins with, or npos if the object is incomplete.
std::size_t end_of_object(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::string read_all(std::istream& in) {
  std::string text;
  std::array<char, 65536> buffer;
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > max_input) throw Error(EFBIG, fmt::format("more than {} bytes of input", max_input));
  }
  if (in.bad()) throw Error(EIO, "cannot read the input");
  return text;
}

std::string read_file(const Context& context, const std::string& name) {
  if (name == "-") return read_all(context.in());
  errno = 0;
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    const int errnum = errno != 0 ? errno : EIO;
    throw Error(errnum, fmt::format("{}: {}", name, std::strerror(errnum)));
  }
  try {
    return read_all(file);
  } catch (const Error& error) {
    throw Error(error.errnum(), fmt::format("{}: {}", name, error.what()));
  }
}

std::vector<std::string_view> split_documents(std::string_view text) {
  std::vector<std::string_view> documents;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    if (text.empty()) return documents;
    if (text.front() != '{') {
      throw Error(EINVAL, fmt::format("document {}: not a JSON object", documents.size() + 1));
    }
    const auto end = end_of_object(text);
    if (end == std::string_view::npos) {
      throw Error(EINVAL, fmt::format("document {}: ends too early", documents.size() + 1));
    }
    documents.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

ResourceSet read_r(const Context& context) { return ResourceSet::parse(read_all(context.in())); }

std::vector<ResourceSet> read_several_r(const Context& context, std::size_t least) {
  const auto text = read_all(context.in());
  std::vector<ResourceSet> sets;
  for (const auto document : split_documents(text)) {
    try {
      sets.push_back(ResourceSet::parse(document));
    } catch (const Error& error) {
      throw Error(error.errnum(), fmt::format("document {}: {}", sets.size() + 1, error.what()));
    }
  }
  if (sets.size() < least) {
    throw Error(EINVAL, fmt::format("needs {} R document{} on standard input, found {}", least,
                                    least == 1 ? "" : "s", sets.size()));
  }
  return sets;
}

ResourceSet read_union_of_r(const Context& context) {
  std::vector<ResourceSet> sets = read_several_r(context, 1);
  ResourceSet all = std::move(sets.front());
  for (std::size_t i = 1; i < sets.size(); ++i) {
    all = append(all, diff(sets[i], all));
    // append() takes no properties from ranks whose resources are already in the union: add them here.
    for (const auto& [name, ranks] : sets[i].properties()) all.add_property(name, ranks);
  }
  return all;
}

}  // namespace resourced::cli::commands
