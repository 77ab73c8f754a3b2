#include "daemon/log/etcd/libcurl.hpp"

#include <cerrno>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::daemon::log::etcd {
namespace {

[[noreturn]] void fail() {
  const char* const why = dlerror();
  throw Error(ENOSYS,
              fmt::format("a cluster needs libcurl (Debian package libcurl4), which cannot be loaded: {}",
                          why == nullptr ? "a function has no address" : why));
}

LibCurl load() {
  void* const library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail();
  LibCurl functions{};
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) fail();
  };
  find(functions.easy_init, "curl_easy_init");
  find(functions.easy_cleanup, "curl_easy_cleanup");
  find(functions.easy_setopt, "curl_easy_setopt");
  find(functions.easy_getinfo, "curl_easy_getinfo");
  find(functions.easy_pause, "curl_easy_pause");
  find(functions.easy_strerror, "curl_easy_strerror");
  find(functions.slist_append, "curl_slist_append");
  find(functions.slist_free_all, "curl_slist_free_all");
  find(functions.multi_init, "curl_multi_init");
  find(functions.multi_cleanup, "curl_multi_cleanup");
  find(functions.multi_setopt, "curl_multi_setopt");
  find(functions.multi_add_handle, "curl_multi_add_handle");
  find(functions.multi_remove_handle, "curl_multi_remove_handle");
  find(functions.multi_socket_action, "curl_multi_socket_action");
  find(functions.multi_info_read, "curl_multi_info_read");
  return functions;
}

}  // namespace

const LibCurl& libcurl() {
  static const LibCurl functions = load();
  return functions;
}

}  // namespace resourced::daemon::log::etcd
