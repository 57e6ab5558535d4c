// Where a size can be read from.
#include "ops/emit/size_sources.h"

#include <doctest/doctest.h>

namespace modelport::ops::emit {
namespace {

using shape::Int;

TEST_CASE("a size is read from the first axis that has it alone") {
  SizeSources<std::string> sources;
  sources.learn_sizes("x", {Int(4), Int::symbol("s")});
  sources.learn_sizes("y", {Int::symbol("s")});
  const auto* found = sources.find_alone(Int::symbol("s"));
  REQUIRE(found != nullptr);
  CHECK(found->tensor == "x");
  CHECK(found->axis == 1);
  CHECK_FALSE(sources.knows("t"));
}

TEST_CASE("a size on its own beats one that has to be solved for") {
  SizeSources<std::string> sources;
  sources.learn_sizes("x", {2 * Int::symbol("s") + 1});
  REQUIRE(sources.find("s") != nullptr);
  CHECK_FALSE(sources.find("s")->alone());
  CHECK(sources.find_alone(Int::symbol("s")) == nullptr);
  sources.learn_sizes("y", {Int::symbol("s")});
  CHECK(sources.find("s")->tensor == "y");
}

TEST_CASE("what is no linear function of a symbol does not give it") {
  SizeSources<std::string> sources;
  sources.learn_sizes("x", {Int::symbol("s") * Int::symbol("s")});
  CHECK_FALSE(sources.knows("s"));
}

TEST_CASE("a symbol that is a number of its own needs no tensor") {
  SizeSources<std::string> sources;
  sources.learn_number("u0");
  CHECK(sources.knows("u0"));
  CHECK(sources.find("u0") == nullptr);
  sources.learn_sizes("x", {Int::symbol("u0")});
  CHECK(sources.find_alone(Int::symbol("u0")) == nullptr);
}

}  // namespace
}  // namespace modelport::ops::emit
