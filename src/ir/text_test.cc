// Golden text: what the printer writes, and that it parses back to the same graph.
#include "ir/text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace modelport::ir {

namespace {

using shape::Int;

/// Printed text must come back as it was, by way of a graph that does the same.
void check_round_trip(const std::string& text) {
  CAPTURE(text);
  const Graph graph = parse_graph(text);
  CHECK(print(graph) == text);
  CHECK(same_program(graph, parse_graph(print(graph))));
}

/// An argument printed as an output, and read back.
std::string through_text(const Arg& arg) {
  Graph graph;
  graph.outputs.push_back({"x", arg});
  const std::string text = print(graph);
  const Graph again = parse_graph(text);
  REQUIRE(again.outputs.size() == 1);
  CHECK(again.outputs[0].value == arg);
  CHECK(again.outputs[0].value.value.index() == arg.value.index());
  const std::size_t from = text.find("x = ") + 4;
  return text.substr(from, text.find('\n', from) - from);
}

std::string error_of(std::string_view text) {
  try {
    parse_graph(text);
  } catch (const ExportError& error) {
    REQUIRE(error.diagnostics().size() == 1);
    CHECK(error.diagnostics()[0].code == Code::bad_text);
    return error.diagnostics()[0].what;
  }
  return "no error";
}

constexpr std::string_view kQwen3 =
    R"(graph qwen3(%input_ids: i64[batch, seq], %past_key_values.0.key: f32[batch, 2, past, 16])
  where batch in 1.. = 3, seq in 2..64 = 7 declared 1.., past in 0.. = 5, u0 in 0.. = 4 from data,
    past + seq >= 2,  # modeling_qwen3.py:12 in Qwen3Model.forward, model
    batch*seq != 11
  weights @model.embed_tokens.weight: f32[1000, 64],
    @model.rotary.inv_freq: f32[8] buffer_not_saved,
    @bn.running_mean: f32[32] buffer,
    @const.0: i64[3] constant
{
  %1 = aten.embedding(weight=@model.embed_tokens.weight, indices=%input_ids) : f32[batch, seq, 64]  # modeling_qwen3.py:391 in Qwen3Model.forward, model.embed_tokens
  %2, %3 = aten.split.Tensor(self=%1, split_size=32, dim=-1) : f32[batch, seq, 32], f32[batch, seq, 32]
  %4 = aten.view(self=%2, size=[batch, seq, 4, 8]) : f32[batch, seq, 4, 8]  # module model.layers.0
  %5 = aten.item(self=%4) : int u0
  %6 = aten.index.Tensor(self=%3, indices=[None, @const.0]) : f32[batch, 3, 32]
  %7 = aten.mean.dim(self=%6, dim=[0, 1], keepdim=false, dtype=f32) : f32[32]
  %8 = aten.full(size=[u0, past + seq], fill_value=-inf) : f32[u0, past + seq]
  aten._assert_async.msg(self=%7, assert_msg="a \"quoted\" text\n")
  assume %7 == true  # modeling_foo.py:12 in Foo.forward, encoder
  assume %7 == 3
  assume %7 == 2.0
  return logits = %8, past_key_values.0.key = %past_key_values.0.key, count = batch*seq
  mutate @bn.running_mean = %7
}
)";

}  // namespace

TEST_CASE("a graph prints as it was written and parses back to the same graph") {
  check_round_trip(std::string(kQwen3));
}

TEST_CASE("the parser fills in what the text says") {
  const Graph graph = parse_graph(kQwen3);
  CHECK(graph.name == "qwen3");
  REQUIRE(graph.inputs.size() == 2);
  CHECK(graph.value(graph.inputs[1]).name == "past_key_values.0.key");
  CHECK(graph.find_input("input_ids") != nullptr);
  REQUIRE(graph.dims.size() == 4);
  CHECK(graph.dims[1].range == shape::Range{2, 64});
  CHECK(graph.dims[1].declared == shape::Range{1, shape::Range::kUnbounded});
  CHECK(graph.dims[1].hint == 7);
  CHECK(graph.dims[3].from_data);
  REQUIRE(graph.guards.size() == 2);
  CHECK(graph.guards[0].where.line == 12);
  CHECK(graph.guards[0].module_path == "model");
  CHECK_FALSE(graph.guards[1].where.known());
  REQUIRE(graph.weights.size() == 4);
  CHECK(graph.value(graph.weights[1]).weight_kind == WeightKind::buffer_not_saved);
  CHECK(graph.value(graph.weights[3]).weight_kind == WeightKind::constant);
  REQUIRE(graph.nodes().size() == 8);
  const Node& embedding = graph.nodes()[0];
  CHECK(graph.place(embedding.place).where ==
        SourceLine{"modeling_qwen3.py", 391, "Qwen3Model.forward"});
  CHECK(graph.place(embedding.place).module_path == "model.embed_tokens");
  CHECK(graph.value(graph.nodes()[3].results[0]).type == Type(ScalarType{Int::symbol("u0")}));
  REQUIRE(graph.assumptions.size() == 3);
  CHECK(std::get<bool>(graph.assumptions[0].expected));
  CHECK(std::get<std::int64_t>(graph.assumptions[1].expected) == 3);
  CHECK(std::get<double>(graph.assumptions[2].expected) == 2.0);
  CHECK(graph.outputs[2].value == Arg{Int::symbol("batch") * Int::symbol("seq")});
  REQUIRE(graph.mutations.size() == 1);
}

TEST_CASE("the smallest graphs print and parse") {
  check_round_trip("graph graph()\n{\n  return\n}\n");
  check_round_trip("graph g(%x: f32[])\n{\n  return x = %x\n}\n");
  CHECK(print(parse_graph("graph g(%x: f32[2]){return x=%x}")) ==
        "graph g(%x: f32[2])\n{\n  return x = %x\n}\n");
}

TEST_CASE("odd names are quoted and come back") {
  Graph graph;
  graph.name = "my model";
  const ValueId one = graph.add_input("1", TensorType{Dtype::f32, {}});
  const ValueId spaced = graph.add_input("odd \"name\"\n\x01\xff", TensorType{Dtype::f32, {}});
  const ValueId colon = graph.add_input("serving:0", TensorType{Dtype::f32, {}});
  const ValueId ends = graph.add_input("ends:", TensorType{Dtype::f32, {}});
  const ValueId weight = graph.add_weight("0.weight", TensorType{Dtype::f32, {2}}, {});
  const ValueId empty = graph.add_weight("", TensorType{Dtype::f32, {2}}, {});
  const NodeId node = graph.add_node(
      "return", {{"in", {one}}, {"1st", {ArgList{{spaced}, {colon}, {ends}, {weight}, {empty}}}}},
      {TensorType{Dtype::boolean, {}}});
  graph.outputs.push_back({"über/out put", {graph.node(node).results[0]}});
  const std::string text = print(graph);
  CHECK(
      text ==
      R"(graph "my model"(%"1": f32[], %"odd \"name\"\n\x01\xff": f32[], %serving:0: f32[], %"ends:": f32[])
  weights @0.weight: f32[2], @"": f32[2]
{
  %1 = "return"(in=%"1", "1st"=[%"odd \"name\"\n\x01\xff", %serving:0, %"ends:", @0.weight, @""]) : bool[]
  return "über/out put" = %1
}
)");
  check_round_trip(text);
  CHECK(same_program(graph, parse_graph(text)));
}

TEST_CASE("every kind of argument has a text of its own") {
  const Int seq = Int::symbol("seq");
  CHECK(through_text({None{}}) == "None");
  CHECK(through_text({true}) == "true");
  CHECK(through_text({Int(-3)}) == "-3");
  CHECK(through_text({Int(INT64_MIN)}) == "-9223372036854775808");
  CHECK(through_text({2 * seq + 1}) == "2*seq + 1");
  CHECK(through_text({2.0}) == "2.0");
  CHECK(through_text({-0.0}) == "-0.0");
  CHECK(through_text({1e-5}) == "1e-05");
  CHECK(through_text({0.1}) == "0.1");
  CHECK(through_text({1e300}) == "1e+300");
  CHECK(through_text({std::numeric_limits<double>::infinity()}) == "inf");
  CHECK(through_text({-std::numeric_limits<double>::infinity()}) == "-inf");
  CHECK(through_text({std::nan("")}) == "nan");
  CHECK(through_text({std::string("f32")}) == "\"f32\"");
  CHECK(through_text({Dtype::boolean}) == "bool");
  CHECK(through_text({ArgList{}}) == "[]");
  CHECK(through_text({ArgList{{None{}}, {ArgList{{Int(1)}, {seq}}}}}) == "[None, [1, seq]]");
}

TEST_CASE("symbolic floats and bools are wrapped, so that they differ from numbers") {
  using shape::Bool;
  using shape::Real;
  const Int seq = Int::symbol("seq");
  const Real root = Real::binary(Real::Op::pow, Real(seq), Real(-0.5));
  CHECK(through_text({root}) == "real(seq**-0.5)");
  CHECK(through_text({Real(2.0)}) == "real(2.0)");
  CHECK(through_text({Real(seq)}) == "real(float(seq))");
  CHECK(through_text({Real::data("u1")}) == "real(u1)");
  CHECK(through_text({Bool(true)}) == "bool(true)");
  CHECK(through_text({Bool::compare(shape::Compare::gt, seq, 1)}) == "bool(seq >= 2)");
  CHECK(through_text({Bool::data("u2")}) == "bool(u2)");
  CHECK(through_text({Bool::data("true")}) == "bool(`true`)");
}

TEST_CASE("symbols that are called like other words do not become them") {
  for (const char* word : {"f32", "bool", "None", "true", "inf", "nan", "int", "real", "in", "and",
                           "where", "a.b", "a b", "a,b)#"}) {
    CAPTURE(word);
    through_text({Int::symbol(word)});
    through_text({-Int::symbol(word)});
    through_text({Int::symbol(word) + 1});
    Graph graph;
    graph.add_input("x", TensorType{Dtype::f32, {Int::symbol(word)}});
    graph.add_node("aten.item", {}, {ScalarType{shape::Real::data(word)}});
    graph.dims.push_back({word, {0, 4}, {0, 9}, 1, false});
    check_round_trip(print(graph));
    CHECK(same_program(graph, parse_graph(print(graph))));
    CHECK(parse_graph(print(graph)).dims == graph.dims);
  }
}

TEST_CASE("types print and parse") {
  CHECK(print(Type(parse_tensor_type("f32[a, b, 3]"))) == "f32[a, b, 3]");
  CHECK(print(Type(parse_tensor_type(" bool[ ] "))) == "bool[]");
  CHECK(parse_tensor_type("i64[2*n + 1]").shape[0] == 2 * Int::symbol("n") + 1);
  CHECK(print(Type(ScalarType{Int::symbol("u0")})) == "int u0");
  CHECK(print(Type(ScalarType{shape::Real::data("u0")})) == "float u0");
  CHECK(print(Type(ScalarType{shape::Bool::data("u0")})) == "bool u0");
  CHECK_THROWS_AS(parse_tensor_type("f33[2]"), ExportError);
  CHECK_THROWS_AS(parse_tensor_type("f32[2] x"), ExportError);
  CHECK_THROWS_AS(parse_tensor_type("f32"), ExportError);
}

TEST_CASE("one node prints as in the whole text") {
  const Graph graph = parse_graph(kQwen3);
  CHECK(print(graph, graph.nodes()[3]) == "%5 = aten.item(self=%4) : int u0");
}

TEST_CASE("places with odd parts come back, and notes are not places") {
  Graph graph;
  const auto add = [&](const Place& place) {
    graph.add_node("aten.f", {}, {}, graph.add_place(place.where, place.module_path));
  };
  const std::vector<Place> places{{{"a.py", 1, ""}, ""},
                                  {{"<frozen x>", 2, "f.<locals>.<lambda>"}, "m.0"},
                                  {{"C:\\x, y.py", -3, "in, it"}, "module # m"},
                                  {{"", 0, "f"}, ""},
                                  {{}, "only.module"}};
  for (const Place& place : places) add(place);
  const std::string text = print(graph);
  check_round_trip(text);
  const Graph again = parse_graph(text);
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(again.place(again.nodes()[i].place) == places[i]);
  }
  const Graph noted =
      parse_graph("graph g()  # a note\n{\n # another\n  aten.f()  # see a.py:1\n}");
  CHECK(noted.nodes()[0].place == PlaceId{});
}

TEST_CASE("people may name results; printing numbers them") {
  const Graph graph = parse_graph(
      "graph g(%x: f32[2])\n{\n  %y = aten.f(\n    self=%x,\n    n=[1,\n 2]) : f32[2]\n"
      "  %9 = aten.g(self=%y) : f32[2]\n  return a = %9,\n    b = %y  # done\n}\n");
  CHECK(print(graph) ==
        "graph g(%x: f32[2])\n{\n  %1 = aten.f(self=%x, n=[1, 2]) : f32[2]\n"
        "  %2 = aten.g(self=%1) : f32[2]\n  return a = %2, b = %1\n}\n");
}

TEST_CASE("bad text is refused with line and column") {
  const auto body = [](std::string_view line) {
    return error_of("graph g(%x: f32[2])\n  weights @w: f32[2]\n{\n" + std::string(line) + "\n}\n");
  };
  CHECK(error_of("") == "line 1, column 1: expected the word graph");
  CHECK(error_of("graph g(%x: f32[2)\n{\n}") == "line 1, column 18: expected ']' after the sizes");
  CHECK(error_of("graph g(%x: f32[2], %x: f32[2])\n{\n}") ==
        "line 1, column 21: a second input called \"x\"");
  CHECK(error_of("graph g()\n{\n") == "line 3, column 1: expected '}' after the last statement");
  CHECK(error_of("graph g()\n{\n}\nx") ==
        "line 4, column 1: expected nothing more after the graph");
  CHECK(body("%1 = aten.f(x=%2) : f32[2]") ==
        "line 4, column 15: a value that is not defined above");
  CHECK(body("%1 = aten.f(x=@v) : f32[2]") ==
        "line 4, column 15: a weight that the graph does not list");
  CHECK(body("%1 = aten.f(x=1)") == "line 4, column 17: expected ':' and the types of the results");
  CHECK(body("%1 = aten.f(x=1) : f32[2], f32[2]") ==
        "line 4, column 1: not one type for each result");
  CHECK(body("%1 = aten.f(%x) : f32[2]") == "line 4, column 13: expected an argument's name");
  CHECK(body("%x = aten.f() : f32[2]") == "line 4, column 1: a result called like an input");
  CHECK(body("%1 = aten.f() : f32[2]\n%1 = aten.f() : f32[2]") ==
        "line 5, column 1: a result that was defined before");
  CHECK(body("return a = 1\nreturn") == "line 5, column 7: a second return");
  CHECK(body("aten.f(x=\"abc)").starts_with("line 4, column 10: a string that does not end"));
  CHECK(body("aten.f(x=seq +)").starts_with("line 4, column 10: "));
  CHECK(body("aten.f(x=99999999999999999999)").starts_with("line 4, column 10: "));
  CHECK(body("aten.f(x=)") == "line 4, column 10: expected a value");
  CHECK(body("assume %x == maybe") == "line 4, column 14: expected true, false or a number");
}

TEST_CASE("lists nested without end are refused, not followed") {
  const std::string deep = "graph g()\n{\n aten.f(x=" + std::string(100000, '[') + "\n}\n";
  CHECK(error_of(deep).ends_with("lists nested too deeply"));
  const std::string brackets = "graph g(%x: f32[" + std::string(100000, '(') + "])\n{\n}\n";
  CHECK(error_of(brackets).starts_with("line 1, column "));
}

TEST_CASE("every graph of the corpus that parses comes back from its text") {
  std::size_t parsed = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/corpus/fuzz_graph_text")) {
    CAPTURE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    try {
      const Graph graph = parse_graph(text);
      check_round_trip(print(graph));
      ++parsed;
    } catch (const ExportError& error) {
      CHECK(error.diagnostics()[0].code == Code::bad_text);
    }
  }
  CHECK(parsed >= 5);
}

}  // namespace modelport::ir
