#include <doctest/doctest.h>

#include <set>

#include "ops/table/sample.h"

namespace modelport::ops {
namespace {

TEST_CASE("no operator has two rows, and the table is sorted") {
  std::string_view before;
  for (const OpDef* op : all_ops()) {
    CHECK_MESSAGE(before < op->name, op->name);
    before = op->name;
  }
}

TEST_CASE("an operator is found by its name, and only by that") {
  REQUIRE(find_op("aten.add.Tensor") != nullptr);
  CHECK(find_op("aten.add.Tensor")->name == "aten.add.Tensor");
  CHECK(find_op("aten.add") == nullptr);
  CHECK(find_op("aten.add_.Tensor") == nullptr);
  CHECK(find_op("") == nullptr);
}

TEST_CASE("the schema of every row parses, and rows are functional") {
  for (const OpDef* op : all_ops()) {
    CAPTURE(op->name);
    const Schema& schema = schema_of(*op);
    CHECK_FALSE(schema.returns.empty());
    std::set<std::string_view> names;
    for (const Parameter& parameter : schema.parameters) CHECK(names.insert(parameter.name).second);
    CHECK(op->schema.find('!') == std::string_view::npos);
  }
}

TEST_CASE("the rule of every row infers each of its samples, as many results as its schema says") {
  for (const OpDef* op : all_ops()) {
    const Schema& schema = schema_of(*op);
    const bool lists = schema.returns.front().ends_with("[]");
    for (const shape::Bindings& sizes : sample_sizes(*op)) {
      for (Sample& sample : samples_of(*op, sizes)) {
        CAPTURE(op->name);
        CAPTURE(sample.text);
        Results results;
        REQUIRE_NOTHROW(results = sample.infer(*op));
        if (!lists) CHECK(results.size() == schema.returns.size());
      }
    }
  }
}

// A rule is a function of the symbols: what it infers at one size must hold at another one, unless
// it said (by a guard) that it does not.
TEST_CASE("a result inferred at one size evaluates to the result inferred at another one") {
  for (const OpDef* op : all_ops()) {
    const auto rounds = sample_sizes(*op);
    auto here = samples_of(*op, rounds[0]);
    auto there = samples_of(*op, rounds[1]);
    for (std::size_t i = 0; i < here.size(); ++i) {
      CAPTURE(op->name);
      CAPTURE(here[i].text);
      const Results a = here[i].infer(*op);
      const Results b = there[i].infer(*op);
      if (!here[i].dims.guards().empty() || !there[i].dims.guards().empty()) continue;
      REQUIRE(a.size() == b.size());
      for (std::size_t k = 0; k < a.size(); ++k) {
        const auto* x = std::get_if<ir::TensorType>(&a[k]);
        const auto* y = std::get_if<ir::TensorType>(&b[k]);
        if (x == nullptr || y == nullptr) continue;
        CHECK(x->dtype == y->dtype);
        REQUIRE(x->shape.size() == y->shape.size());
        for (std::size_t axis = 0; axis < x->shape.size(); ++axis) {
          std::set<std::string, std::less<>> symbols;
          shape::collect_symbols(x->shape[axis], symbols);
          bool from_data = false;
          for (const auto& symbol : symbols) from_data |= here[i].dims.find(symbol)->from_data;
          if (from_data) continue;
          CHECK(shape::evaluate(x->shape[axis], rounds[1]) == there[i].dims.hint(y->shape[axis]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace modelport::ops
