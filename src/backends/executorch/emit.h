// A graph in ExecuTorch's dialect as a method: values, instructions, and which tensors share
// memory.
//
// Nodes of the dialect:
//   et.aten.add.out(self=%a, other=%b, alpha=1)  the kernel aten::add.out; arguments in the order
//   of
//                                  the schema, none left out, without the `out` tensors: those are
//                                  the results
//   et.view(self=%a, size=[n, 4])  the same memory in another shape; nothing is copied
//   et.aten._local_scalar_dense(self=%a) : int u0     a number read from data
//   et.delegate(payload=0, inputs=[%a, %b])           a payload of the request takes over
//   et.constant(values=[1.0, 2.0]) : f32[2]           a tensor that is written out
//   et.quantize(weight=@w, layout="xnnpack_qbint4", bits=4, group=32) : u8[8, 16], bf16[8, 1]
//                                  codes and scales of a weight, computed when it is written
//   et.fold_norm(weight=@w, bias=None, mean=@m, variance=@v, scale=@s, shift=@b, eps=1e-05)
//                                  filter and bias of a convolution with the norm behind it in
//                                  them; for XNNPACK only
//   xnn.Add(input1=%a, input2=%b)  nodes of XNNPACK; those in a row are one delegate
//                                  (xnnpack/payload.h)
// Kernels whose name ends in _ write to their first operand; llama::update_cache to its cache.
#pragma once

#include "backends/executorch/bounds.h"
#include "backends/executorch/data.h"
#include "backends/executorch/method.h"
#include "ir/graph.h"
#include "signature/limits.h"
#include "weights/store.h"

namespace modelport::executorch {

struct MethodSource {
  std::string name = "forward";
  const ir::Graph& graph;
  const weights::WeightStore& weights;
  GivenBounds bounds = {};  // of axes, by name
  std::vector<signature::FrozenArgument> frozen = {};
};

struct EmitOptions {
  bool external_constants = false;  // constants are looked up by name, and cannot be reshaped
  std::size_t payloads = 0;         // how many delegates the request has
  bool checks_as_outputs = false;   // what the graph assumes of data comes behind its outputs
};

/// Throws ExportError with every axis that has no bound, or for a node that is not of the dialect.
Method emit(const MethodSource& source, const EmitOptions& options, ProgramData& data);

/// How the file calls the type; throws ExportError where it has no name for it.
std::int64_t scalar_type(Dtype dtype);

}  // namespace modelport::executorch
