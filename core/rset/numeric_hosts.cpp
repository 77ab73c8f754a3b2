#include "core/rset/numeric_hosts.hpp"

#include <algorithm>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

std::map<IdSet::Id, std::string> hosts_by_number(const ResourceSet& set) {
  std::map<IdSet::Id, std::string> hosts;
  set.nodelist().for_each([&](std::string_view name) {
    const auto number = text::whole_number<IdSet::Id>(name);
    if (number && set.rank_of(name) != *number) hosts.emplace(*number, name);
  });
  return hosts;
}

void refuse_numbers_of_hosts(const IdSet& ranks, const ResourceSet& set) {
  Hostlist hosts;
  for (const auto& [number, host] : hosts_by_number(set)) {
    if (ranks.contains(number)) hosts.append(host);
  }
  if (hosts.empty()) return;
  const std::string text = ranks.encode();
  const bool is_list = text.find(',') != std::string::npos;
  const std::string meant = set.hosts(ranks).encode();
  throw Error(EINVAL, fmt::format("{} may mean {}{}, or {} by name: say rank:{}{}{} or host:{}", text,
                                  meant.empty() ? "ranks" : "ranks, which are ", meant, hosts.encode(),
                                  is_list ? "[" : "", text, is_list ? "]" : "", hosts.encode()));
}

}  // namespace resourced::rset
