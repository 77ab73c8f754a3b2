#include "core/text/host_brackets.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::text {

std::vector<std::string_view> split_outside_brackets(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  bool is_inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == ']') is_inside = text[i] == '[';
    if (text[i] != ',' || is_inside) continue;
    parts.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

Hostlist parse_brackets(std::string_view name) {
  // The text before each pair but the first is that behind the pair before it.
  std::vector<std::pair<std::string_view, Hostlist>> pairs;
  std::size_t hosts = 1;
  std::size_t begin = 0;
  for (std::size_t open = name.find('['); open != std::string_view::npos; open = name.find('[', begin)) {
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos) return Hostlist::parse(name);
    pairs.emplace_back(name.substr(begin, open - begin),
                       Hostlist::parse(name.substr(open, close + 1 - open)));
    hosts *= pairs.back().second.size();
    if (hosts > Hostlist::max_expansion)
      throw Error(ERANGE, fmt::format("{} has more than {} hosts", quoted(name), Hostlist::max_expansion));
    begin = close + 1;
  }
  if (pairs.size() < 2) return Hostlist::parse(name);
  // Hostlist::parse() expands the last pair by itself.
  const std::string_view last = name.substr(name.rfind('['));
  const std::string_view before_last = pairs.back().first;
  pairs.pop_back();
  std::vector<std::string> names(1);
  for (const auto& [before, numbers] : pairs) {
    if (numbers.size() == 1) {
      const std::string number = numbers.encode();
      for (std::string& one : names) one.append(before).append(number);
      continue;
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers.size());
    for (const std::string& one : names) {
      numbers.for_each([&, &text = before](std::string_view number) {
        longer.push_back(std::string(one).append(text).append(number));
      });
    }
    names = std::move(longer);
  }
  Hostlist all;
  for (std::string& one : names) all.append(Hostlist::parse(one.append(before_last).append(last)));
  return all;
}

Hostlist parse_brackets_list(std::string_view list) {
  const auto parts = split_outside_brackets(list);
  const auto is_of_rfc = [](std::string_view part) { return std::ranges::count(part, '[') < 2; };
  if (std::ranges::all_of(parts, is_of_rfc)) return Hostlist::parse(list);
  Hostlist hosts;
  for (const std::string_view part : parts) {
    hosts.append(parse_brackets(part));
    if (hosts.size() > Hostlist::max_expansion)
      throw Error(ERANGE, fmt::format("{} has more than {} hosts", quoted(list), Hostlist::max_expansion));
  }
  return hosts;
}

}  // namespace resourced::text
