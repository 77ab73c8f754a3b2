#include "daemon/service/user_names.hpp"

#include <cerrno>
#include <exception>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "os/thread.hpp"
#include "os/user_name.hpp"

namespace resourced::daemon::service {

struct UserNames::Link {
  struct Entry {
    std::optional<std::string> name;
    SteadyTime asked{};
  };
  std::mutex mutex;
  std::unordered_map<std::uint32_t, Entry> known;
  std::set<std::uint32_t> wanted;
  bool is_asking = false;
};

UserNames::UserNames(Ask ask)
    : ask_(ask ? std::move(ask) : Ask(os::user_name)), link_(std::make_shared<Link>()) {}

std::map<std::uint32_t, std::string> UserNames::find(const text::IdSet& ids, SteadyTime now) {
  constexpr Seconds kept_for{600};
  constexpr std::size_t most_known = 16 * most;
  if (ids.count() > most) throw Error(EINVAL, fmt::format("userids: more than {}", most));
  std::map<std::uint32_t, std::string> names;
  const std::lock_guard lock(link_->mutex);
  if (link_->known.size() > most_known) link_->known.clear();
  ids.for_each([&](text::IdSet::Id uid) {
    const auto found = link_->known.find(uid);
    if (found == link_->known.end() || now - found->second.asked > kept_for) {
      if (link_->wanted.size() < most) link_->wanted.insert(uid);
    } else if (found->second.name) {
      names.emplace(uid, *found->second.name);
    }
  });
  if (link_->wanted.empty() || link_->is_asking) return names;
  try {
    os::start_thread([link = link_, ask = ask_, now] {
      std::unique_lock asking(link->mutex);
      while (!link->wanted.empty()) {
        const std::uint32_t uid = *link->wanted.begin();
        asking.unlock();
        std::optional<std::string> name = ask(uid);
        asking.lock();
        link->wanted.erase(uid);
        link->known[uid] = {std::move(name), now};
      }
      link->is_asking = false;
    });
    link_->is_asking = true;
  } catch (const std::exception&) {
    // If the system has no thread now, the next question may find one.
  }
  return names;
}

}  // namespace resourced::daemon::service
