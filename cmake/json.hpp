// Includes the JSON library for precompiled headers, with less of it for the compiler to do.
#pragma once

// The library defines operator""_json as an inline function. The compiler instantiates what an inline
// function calls even if nothing calls the function itself: the library's parser, in each source, although
// core/json reads all JSON. So the macros give the bodies of both literals to templates that nothing
// instantiates. A use of a literal would not link.
#define _json(...)    \
  _json(__VA_ARGS__); \
  template <class>    \
  nlohmann::json unused_json_literal(__VA_ARGS__)
#define _json_pointer(...)    \
  _json_pointer(__VA_ARGS__); \
  template <class>            \
  nlohmann::json::json_pointer unused_json_pointer_literal(__VA_ARGS__)
// No file name becomes a JSON value, and <filesystem> is a large header.
#define JSON_HAS_FILESYSTEM 0

#include <nlohmann/json.hpp>

#undef _json
#undef _json_pointer
