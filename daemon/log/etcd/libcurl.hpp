// The functions of libcurl that a client of etcd calls. The library and the nineteen that only it needs
// are loaded with the first client: they would cost a daemon without a cluster 3 MiB, and 3 ms of its start.
#pragma once

#include <curl/curl.h>

namespace resourced::daemon::log::etcd {

struct LibCurl {
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_pause) easy_pause;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_multi_setopt) multi_setopt;
  decltype(&curl_multi_add_handle) multi_add_handle;
  decltype(&curl_multi_remove_handle) multi_remove_handle;
  decltype(&curl_multi_socket_action) multi_socket_action;
  decltype(&curl_multi_info_read) multi_info_read;
};

/// Returns the functions, and loads the library at the first call. Throws Error ENOSYS if it cannot be
/// loaded.
const LibCurl& libcurl();

}  // namespace resourced::daemon::log::etcd
