// Candidates among many names, see name_groups.hpp.
#include "cli/name_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/hostlist.hpp"

namespace resourced::cli {

namespace {

using Names = std::vector<std::string>;

/// Maximum length of a hostlist that is offered as a candidate.
constexpr std::size_t longest_hostlist = 80;

Names sorted_with(Names names, std::string_view prefix) {
  std::erase_if(names, [prefix](const std::string& name) { return !name.starts_with(prefix); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Whether the byte continues a character of UTF-8.
bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

/// Returns the character that begins at `from`, as bytes. Requires one.
std::string_view character_at(std::string_view name, std::size_t from) {
  std::size_t end = from + 1;
  while (end < name.size() && continues_character(name[end])) ++end;
  return name.substr(from, end - from);
}

/// Returns the common beginning of sorted names, in whole characters. Requires one name.
std::string shared_beginning(Names::const_iterator first, Names::const_iterator last) {
  // All names between two sorted ones begin with what these two share.
  const std::string& low = *first;
  const std::string& high = *(last - 1);
  const auto end = std::mismatch(low.begin(), low.end(), high.begin(), high.end()).first;
  auto length = static_cast<std::size_t>(end - low.begin());
  while (length > 0 && length < high.size() && continues_character(high[length])) --length;
  return low.substr(0, length);
}

Names groups_of(const Names& names, std::size_t most) {
  if (names.size() <= most) return names;
  const std::size_t length = shared_beginning(names.begin(), names.end()).size();
  Names groups;
  auto first = names.begin();
  if (first->size() == length) groups.push_back(*first++);
  while (first != names.end()) {
    const std::string_view next = character_at(*first, length);
    const auto last = std::find_if(first, names.end(), [length, next](const std::string& name) {
      return character_at(name, length) != next;
    });
    groups.push_back(shared_beginning(first, last));
    first = last;
  }
  return groups;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Returns the names as a hostlist such as `node[0-7]`; empty if they differ in more than a number.
std::string hostlist_of(const Names& names) {
  const std::string beginning = shared_beginning(names.begin(), names.end());
  Names numbers;
  for (const std::string& name : names) {
    std::string rest = name.substr(beginning.size());
    if (rest.empty()) continue;
    if (!is_number(rest)) return {};
    numbers.push_back(std::move(rest));
  }
  if (numbers.size() < 2) return {};
  std::sort(numbers.begin(), numbers.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  // Compress the numbers with another prefix: the beginning may end in digits, which the hostlist would count
  // as part of the number.
  text::Hostlist hosts;
  for (const std::string& number : numbers) hosts.append("n" + number);
  // Make a term for each number of digits: `n[0-9],n[00-99]`. Brackets have numbers of one width only (RFC
  // 29).
  std::string all;
  for (const char c : hosts.encode()) {
    if (c == 'n') {
      all += beginning;
    } else {
      all += c;
    }
  }
  return all.size() <= longest_hostlist ? all : "";
}

}  // namespace

std::vector<std::string> name_candidates(std::vector<std::string> names, std::string_view prefix) {
  return groups_of(sorted_with(std::move(names), prefix), most_names);
}

std::vector<std::string> host_candidates(std::vector<std::string> hosts, std::string_view prefix) {
  Names matching = sorted_with(std::move(hosts), prefix);
  if (matching.size() < 2) return matching;
  Names candidates = groups_of(matching, most_names);
  if (std::string all = hostlist_of(matching); !all.empty()) candidates.insert(candidates.begin(), all);
  return candidates;
}

}  // namespace resourced::cli
