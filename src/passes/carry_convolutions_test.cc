// Convolutions over a carried state on graphs in text form: which become one operator, and why
// others do not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/onnx_pipeline.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

struct Convolved {
  std::string text;
  std::vector<FusionNote> notes;

  bool has(std::string_view part) const { return text.find(part) != std::string::npos; }
};

Convolved convolved(const std::string& text, Operators operators = Operators::onnxruntime) {
  FusionContext context;
  const ir::Graph graph =
      to_onnx(ir::parse_graph(text), {.opset = 23, .operators = operators}, context);
  ir::verify(graph);
  return {ir::print(graph), context.notes};
}

struct ShortConvolution {
  std::string_view dtype = "f32";
  std::string_view start = "4";  // of the new tokens, after the activation
  std::string_view kept = "-4";  // where the next state starts
  std::string_view groups = "8";
  std::string_view inputs = "1";  // of each output channel
  std::string_view returned = "y = %6, state = %2";
};

/// As models write it that carry as many columns as their convolution is wide.
std::string short_convolution(const ShortConvolution& how = {}) {
  constexpr std::string_view kText =
      R"(graph g(%past: {0}[b, 8, 4], %x: {0}[b, 8, s])
  where b in 1.. = 2, s in 1.. = 3
  weights @w: {0}[8, {4}, 4], @c: {0}[8]
{{
  %1 = aten.cat(tensors=[%past, %x], dim=-1) : {0}[b, 8, s + 4]
  %2 = aten.slice.Tensor(self=%1, dim=2, start={2}, end=9223372036854775807) : {0}[b, 8, 4]
  %3 = aten.conv1d(input=%1, weight=@w, bias=@c, padding=[3], groups={3}) : {0}[b, 8, s + 7]
  %4 = aten.slice.Tensor(self=%3, dim=2, start=0, end=s + 4) : {0}[b, 8, s + 4]
  %5 = aten.silu(self=%4) : {0}[b, 8, s + 4]
  %6 = aten.slice.Tensor(self=%5, dim=2, start={1}, end=s + {1}) : {0}[b, 8, s]
  return {5}
}}
)";
  return fmt::format(kText, how.dtype, how.start, how.kept, how.groups, how.inputs, how.returned);
}

/// With as many columns as the convolution looks back, and nothing that goes.
std::string exact_convolution(std::string_view columns, std::string_view length) {
  constexpr std::string_view kText =
      R"(graph g(%past: f32[b, 8, {0}], %x: f32[b, 8, 1])
  where b in 1.. = 2, n in 4.. = 5
  weights @w: f32[8, 1, 4]
{{
  %1 = aten.cat(tensors=[%past, %x], dim=2) : f32[b, 8, {0} + 1]
  %2 = aten.slice.Tensor(self=%1, dim=2, start=1, end=9223372036854775807) : f32[b, 8, {0}]
  %3 = aten.conv1d(input=%1, weight=@w, groups=8) : f32[b, 8, {1}]
  return y = %3, state = %2
}}
)";
  return fmt::format(kText, columns, length);
}

/// Why the only convolution stayed as it is; empty where it did not.
std::string why_it_stays(const std::string& text) {
  const Convolved found = convolved(text);
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].fusion == "convolution with a carried state");
  CHECK(found.has("com.microsoft.CausalConvWithState") == found.notes[0].objection.empty());
  CHECK(found.has("onnx.Conv(") == !found.notes[0].objection.empty());
  return found.notes[0].objection;
}

}  // namespace

TEST_CASE("a convolution over a state and new tokens is one operator that gives the next state") {
  const Convolved found = convolved(short_convolution());
  CHECK(found.has("com.microsoft.CausalConvWithState(inputs=[%x, "));
  CHECK(found.has(", @c, %past]) : f32[b, 8, s], f32[b, 8, 4]"));
  CHECK_FALSE(found.has("onnx.Conv("));
  CHECK_FALSE(found.has("onnx.Concat"));
  CHECK_FALSE(found.has("onnx.Slice"));
  CHECK(why_it_stays(short_convolution()).empty());
}

TEST_CASE("columns of a state that the convolution does not see get weights of zero") {
  CHECK(convolved(short_convolution()).has("onnx.Pad(inputs=[@w"));
}

TEST_CASE("a state with one column less than the convolution is wide takes the weight as it is") {
  const Convolved found = convolved(exact_convolution("3", "1"));
  CHECK(found.has("com.microsoft.CausalConvWithState(inputs=[%x, @w, None, %past])"));
  CHECK_FALSE(found.has("onnx."));
}

TEST_CASE("standard operators convolve what they have joined") {
  const Convolved found = convolved(short_convolution(), Operators::standard);
  CHECK(found.has("onnx.Conv("));
  CHECK(found.notes.empty());
}

TEST_CASE("the activation is computed for new tokens alone") {
  CHECK(convolved(short_convolution()).has("onnx.Sigmoid"));
  CHECK_FALSE(convolved(short_convolution()).has("f32[b, 8, s + 4]"));
}

TEST_CASE("a convolution that the kernel would compute otherwise stays, and is told of") {
  const auto why = [](const ShortConvolution& how) { return why_it_stays(short_convolution(how)); };
  CHECK(why({.start = "3"}) == "columns before those of new tokens are read as well");
  CHECK(why({.returned = "y = %6, all = %5, state = %2"}) ==
        "columns before those of new tokens are read as well");
  CHECK(why({.kept = "0"}) == "other nodes read its columns as well");
  CHECK(why({.returned = "y = %6, state = %1"}) == "other nodes read its columns as well");
  CHECK(why({.groups = "4", .inputs = "2"}) == "it mixes channels");
  CHECK(why({.dtype = "f16"}) == "its kernel takes f32");
  CHECK(why_it_stays(exact_convolution("n", "n - 2")) ==
        "its state may have any number of columns");
  CHECK(why_it_stays(exact_convolution("2", "0")) ==
        "its state has fewer columns than it looks back");
}

}  // namespace modelport::passes
