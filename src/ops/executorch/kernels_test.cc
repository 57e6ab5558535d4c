// Which kernel serves a row, and how many rows still wait for a word.
#include "ops/executorch/kernels.h"

#include <doctest/doctest.h>

namespace modelport::ops::executorch {
namespace {

std::string_view kernel(std::string_view row) { return kernel_of(*find_op(row)); }

TEST_CASE("the kernel follows from the name of the row") {
  CHECK(kernel("aten.add.Scalar") == "aten::add.Scalar_out");
  CHECK(kernel("aten.add.Tensor") == "aten::add.out");
  CHECK(kernel("aten.addmm") == "aten::addmm.out");
}

TEST_CASE("a view is served by the copy that it looks like") {
  CHECK(kernel("aten.diagonal") == "aten::diagonal_copy.out");
  CHECK(kernel("aten.slice.Tensor") == "aten::slice_copy.Tensor_out");
}

TEST_CASE("a row says which kernel it is where names do not tell") {
  CHECK(kernel("aten.prod.dim_int") == "aten::prod.int_out");
  CHECK(kernel("aten.topk") == "aten::topk.values");
  CHECK(kernel("aten.any") == "aten::any.all_out");
}

TEST_CASE("there is no kernel for a row that refuses or is taken apart, or that nothing serves") {
  CHECK(kernel("aten.view.dtype").empty());
  CHECK(kernel("aten.arange.start").empty());
  CHECK(kernel("aten.special_bessel_j0").empty());
}

TEST_CASE("every kernel that a row names is registered") {
  for (const OpDef* op : all_ops()) {
    CAPTURE(op->name);
    const std::string_view name = kernel_of(*op);
    if (!name.empty()) CHECK(is_registered(name));
  }
}

// May only fall: a row whose cell is filled in counts no more.
constexpr int kUndecided = 0;

TEST_CASE("rows that say nothing for ExecuTorch, and that nothing follows for") {
  int undecided = 0;
  for (const OpDef* op : all_ops())
    undecided += !is_filled(op->executorch) && kernel_of(*op).empty() ? 1 : 0;
  MESSAGE(undecided << " of " << all_ops().size() << " rows are undecided for ExecuTorch");
  CHECK(undecided <= kUndecided);
}

}  // namespace
}  // namespace modelport::ops::executorch
