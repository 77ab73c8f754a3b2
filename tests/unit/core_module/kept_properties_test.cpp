// Properties that were set at run time, and which of them a reload keeps.
#include <variant>

#include <doctest/doctest.h>

#include "world.hpp"

namespace resourced::test {
namespace {

using module::DefineEvent;
using module::PropertyCommand;
using module::ReloadCommand;
using text::IdSet;

TEST_CASE(
    "an event of a reload names the properties that targets still have from an operator, and no other") {
  World world([](const auto& /*scheduler*/, const auto& /*delta*/) {});
  world.start(make_inventory("a,b"), {});
  world.execute(PropertyCommand{PropertyCommand::Op::add, "fast", "0-1"});
  world.execute(PropertyCommand{PropertyCommand::Op::add, "wide", "0"});
  world.execute(PropertyCommand{PropertyCommand::Op::remove, "fast", "0-1"});
  ReloadCommand reload;
  reload.exclude = IdSet{1};
  world.execute(reload);
  const auto& define = std::get<DefineEvent>(world.log().back().body);
  CHECK(define.kept_properties == rset::ResourceSet::Properties{{"wide", IdSet{0}}});
}

}  // namespace
}  // namespace resourced::test
