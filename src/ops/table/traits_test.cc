// What rows say beside computing: views, writes through them, what the recorder does.
#include <doctest/doctest.h>

#include "ops/table/op.h"
#include "ops/table/schema.h"

namespace modelport::ops {
namespace {

TEST_CASE("an operator shares memory where the schema of its row says so") {
  CHECK(may_share_memory("aten.view"));
  CHECK(may_share_memory("aten.tensor_split.sections"));
  CHECK(may_share_memory("aten.numpy_T"));
  CHECK(may_share_memory("aten.type_as"));  // gives its operand back, which no schema says
  CHECK_FALSE(may_share_memory("aten.add.Tensor"));
  CHECK_FALSE(may_share_memory("aten._to_copy"));
}

TEST_CASE("an overload without a row shares memory if others of its name do") {
  REQUIRE(find_op("aten.view.some_overload") == nullptr);
  CHECK(may_share_memory("aten.view.some_overload"));
  CHECK_FALSE(may_share_memory("aten.add.some_overload"));
  CHECK_FALSE(may_share_memory("custom.thing"));
}

TEST_CASE("what is written through a view is put back only where there is a view") {
  for (const OpDef* op : all_ops()) {
    CAPTURE(op->name);
    const bool puts_back = op->put_back.how != PutBack::How::unknown;
    const bool composite = op->name == "aten._unsafe_view";  // a view that nobody else sees
    if (puts_back && !composite) CHECK(schema_of(*op).viewed() != nullptr);
    const bool by_another =
        op->put_back.how == PutBack::How::scatter || op->put_back.how == PutBack::How::inverse;
    CHECK(by_another == !op->put_back.op.empty());
    if (by_another) CHECK(find_op(op->put_back.op) != nullptr);
  }
}

TEST_CASE("a write by an operator with arguments of its own takes them all") {
  for (const OpDef* op : all_ops()) {
    if (op->put_back.how != PutBack::How::scatter) continue;
    CAPTURE(op->name);
    const Schema& scatter = schema_of(*find_op(op->put_back.op));
    for (const Parameter& parameter : schema_of(*op).parameters)
      CHECK(scatter.find(parameter.name) != nullptr);
  }
}

TEST_CASE("operators that take a shape are those of view and reshape") {
  CHECK(takes_shape("aten.view"));
  CHECK(takes_shape("aten.reshape"));
  CHECK(takes_shape("aten._unsafe_view"));
  CHECK_FALSE(takes_shape("aten.squeeze.dims"));
  CHECK_FALSE(takes_shape("aten.view.dtype"));
  CHECK_FALSE(takes_shape("aten.expand"));
}

TEST_CASE("the recorder's way with an operator is found for rows and for operators in place") {
  CHECK(handling_of("aten.item") == Handling::read_number);
  CHECK(handling_of("aten.to.dtype") == Handling::cast);
  CHECK(handling_of("aten.copy_") == Handling::copy);
  CHECK(handling_of("aten.add.Tensor") == Handling::record);
  CHECK(handling_of("aten.add_.Tensor") == Handling::record);
  CHECK(functional_name("aten.zero_") == "aten.zeros_like");
  CHECK(functional_name("aten.add_.Tensor").empty());
  CHECK(writes_in_place("aten.add_.Tensor"));
  CHECK_FALSE(writes_in_place("aten.__and__.Tensor"));
}

TEST_CASE("layouts come from the row, else from its family") {
  CHECK(layout_of(*find_op("aten.sin")) == Layout::like_operands);
  CHECK(layout_of(*find_op("aten.sum.dim_IntList")) == Layout::dense_for_dense);
  CHECK(layout_of(*find_op("aten.linear")) == Layout::dense);
  CHECK(layout_of(*find_op("aten.embedding")) == Layout::dense_rows);
  CHECK(layout_of(*find_op("aten.view")) == Layout::unknown);
}

}  // namespace
}  // namespace modelport::ops
