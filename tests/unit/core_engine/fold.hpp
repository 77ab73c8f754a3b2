// The state that the records of an engine lead to, as the log would keep it.
#pragma once

#include "core/engine/record.hpp"
#include "core/module/state.hpp"

namespace resourced::engine {

struct Fold {
  module::State state = {};

  void apply(const Record& record) { (void)module::apply(state, record.event); }
};

}  // namespace resourced::engine
