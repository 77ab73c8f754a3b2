#include "daemon/upkeep.hpp"

#include <chrono>
#include <cstddef>

#include "daemon/log/store.hpp"
#include "os/loop.hpp"
#include "os/memory.hpp"

namespace resourced::daemon {

void Upkeep::begin() {
  trim();
  work_often();
}

void Upkeep::set_history(Seconds history) {
  history_ = history;
  trim();
}

// Trims the history once a minute. The interval only affects the size on disk.
void Upkeep::trim() {
  constexpr std::chrono::minutes between{1};
  store_.trim(history_ < forever ? os::wall_clock() - history_ : WallTime());
  trim_timer_.expires_after(between);
  trim_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) trim();
  });
}

void Upkeep::work_often() {
  give_back_memory();
  if (watches_from_ && os::steady_clock() >= *watches_from_) store_.write_watched(os::wall_clock());
  os::run_at(frequent_timer_, os::steady_clock() + watch_interval, [this] { work_often(); });
}

// The allocator keeps the memory that many closed connections have freed, as libzmq's buffers fragment the
// heap. Call it only after many connections have ended.
void Upkeep::give_back_memory() {
  constexpr std::size_t crowd = 512;
  if (listeners_.have_emptied(crowd)) {
    const transport::LoopHold hold(&holds_, "releasing memory");
    os::give_back_memory();
  }
}

}  // namespace resourced::daemon
