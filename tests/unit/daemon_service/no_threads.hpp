// Makes the creation of threads fail, as at the limit of the system: the requested stack does not fit in any
// address space.
#pragma once

#include <cstddef>

#include <doctest/doctest.h>
#include <pthread.h>

namespace resourced::daemon::test {

class NoThreads {
 public:
  NoThreads() {
    pthread_attr_init(&before_);
    REQUIRE(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    REQUIRE(pthread_attr_setstacksize(&huge, std::size_t{1} << 60) == 0);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  NoThreads(NoThreads&&) = delete;
  NoThreads& operator=(NoThreads&&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace resourced::daemon::test
