// Limits of a program: what is refused, in which words, and that the record comes back as it went.
#include "signature/limits.h"

#include <doctest/doctest.h>

#include "ir/text.h"

namespace modelport::signature {
namespace {

const char* const kGraph =
    "graph g(%x: f32[batch, seq, 8], %mask: i64[batch, past + seq])\n"
    "  where batch in 1.. = 2, seq in 1..64 = 5, past in 0.. = 3,\n"
    "    seq % 2 == 1  # model.py:12 in Net.forward\n{\n"
    "  %1 = aten.relu(self=%x) : f32[batch, seq, 8]\n  return y = %1\n}\n";

Limits limits() { return limits_of(ir::parse_graph(kGraph)); }

std::string refused(const Limits& limits, std::vector<std::vector<std::int64_t>> sizes) {
  try {
    bind_sizes(limits, {sizes.begin(), sizes.end()});
  } catch (const ExportError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("sizes inside the limits give every symbol its value") {
  const std::vector<std::vector<std::int64_t>> sizes{{4, 7, 8}, {4, 9}};
  const shape::Values values = bind_sizes(limits(), {sizes.begin(), sizes.end()});
  CHECK(values.ints.at("batch") == 4);
  CHECK(values.ints.at("seq") == 7);
  CHECK(values.ints.at("past") == 2);
}

TEST_CASE("a size outside its range is refused with axis and range") {
  const std::string text = refused(limits(), {{2, 65, 8}, {2, 68}});
  CHECK(has(text, "E0304"));
  CHECK(has(text, "seq is 65 (axis 1 of input x), and the program is right for 1 to 64"));
  CHECK(has(text, "way out"));
}

TEST_CASE("a size of zero is refused where the axis has to have something on it") {
  CHECK(has(refused(limits(), {{0, 5, 8}, {0, 8}}), "batch is 0"));
}

TEST_CASE("a condition that does not hold is refused with the model's line") {
  const std::string text = refused(limits(), {{2, 4, 8}, {2, 7}});
  CHECK(has(text, "seq is 4"));
  CHECK(has(text, "model.py:12"));
}

TEST_CASE("sizes that contradict each other are refused") {
  CHECK(has(refused(limits(), {{2, 5, 8}, {3, 8}}), "input mask has size 3 on axis 0"));
  CHECK(has(refused(limits(), {{2, 5, 8}, {2, 2}}), "past is -3"));
}

TEST_CASE("all limits that are broken are named at once") {
  const std::string text = refused(limits(), {{0, 66, 9}, {0, 66}});
  CHECK(has(text, "batch is 0"));
  CHECK(has(text, "seq is 66"));
  CHECK(has(text, "size 9 on axis 2"));
}

TEST_CASE("a symbol that an axis has a multiple of is found, and what is no multiple is refused") {
  const Limits doubled =
      limits_of(ir::parse_graph("graph g(%x: f32[4*n])\n  where n in 1..3 = 2\n{\n"
                                "  %1 = aten.relu(self=%x) : f32[4*n]\n  return y = %1\n}\n"));
  CHECK(refused(doubled, {{12}}).empty());
  CHECK(has(refused(doubled, {{16}}), "n is 4"));
  CHECK(has(refused(doubled, {{10}}), "input x has size 10 on axis 0"));
}

TEST_CASE("limits come back from JSON as they went") {
  Limits all = limits();
  all.frozen = {{"power", {std::int64_t{2}}}, {"mask", {}}, {"scale", {0.5}}, {"kind", {"mean"}}};
  all.checks = {{"modelport.check.0", "the model branches", {"m.py", 3, "f"}, "layer"}};
  all.state = {{"steps", "steps_out"}};
  all.dims[1].hi_where = {"m.py", 7, "g"};
  const std::string text = to_json(all);
  const Limits again = parse_limits(text);
  CHECK(to_json(again) == text);
  CHECK(again.dims[1].hi_where.line == 7);
  CHECK(in_words(again) == in_words(all));
}

TEST_CASE("limits in words say what a caller could meet, one line each") {
  Limits all = limits();
  all.dims[1].hi_where = {"m.py", 7, "g"};
  all.frozen = {{"power", {std::int64_t{2}}}, {"mask", {}}};
  all.state = {{"steps", "steps_out"}};
  const std::vector<std::string> words = in_words(all);
  REQUIRE(words.size() == 4);
  CHECK(words[0] == "seq is 1 to 64  (m.py:7)");
  CHECK(has(words[1], "model.py:12"));
  CHECK(words[2] == "power stays 2");
  CHECK(has(words[3], "steps_out"));
}

TEST_CASE("text that is no record of limits is refused, whatever it is") {
  for (const char* text :
       {"", "{}", "[]", "{\"inputs\": 3}", "[[[[",
        "{\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[\"9**9**9\"]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"dtype\":\"f33\",\"shape\":[]}]}"}) {
    CHECK_THROWS_AS(parse_limits(text), ExportError);
  }
}

}  // namespace modelport::signature
