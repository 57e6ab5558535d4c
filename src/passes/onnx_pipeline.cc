#include "passes/onnx_pipeline.h"

#include <algorithm>
#include <array>

#include "passes/fuse.h"
#include "passes/lower.h"
#include "passes/onnx_passes.h"
#include "passes/rewrite.h"

namespace modelport::passes {
namespace {

constexpr std::array kBefore{
    Pass{"fuse_norms", "a norm written by hand is one operator, and one kernel, in the target",
         fuse_norms},
    Pass{"fuse_grouped_attention", "attention repeats key heads itself, without copying them",
         fuse_grouped_attention},
};
constexpr std::array kForOnnxruntime{
    RuntimeFusion{"put_caches_in_place",
                  "new keys and values are written into the cache instead of copying it",
                  put_caches_in_place},
    RuntimeFusion{"carry_convolutions",
                  "a state is not joined with new tokens, nor are its columns convolved again",
                  carry_convolutions},
};
constexpr std::array kForOnnxruntimeAfter{
    RuntimeFusion{"fuse_skip_norms", "a sum is read once for itself and for its norm",
                  fuse_skip_norms},
    RuntimeFusion{"fuse_heads", "heads of attention are not turned before it and back after it",
                  fuse_heads},
    RuntimeFusion{"fuse_flat_products",
                  "tensors are not flattened before a product and given their sizes back after it",
                  fuse_flat_products},
};
constexpr std::array kAfter{
    Pass{"fold_constants", "what is known now need not be computed each time", fold_constants},
    Pass{"simplify", "casts, transposes and neutral numbers that cancel", simplify},
    Pass{"share_common", "what is computed twice is computed once", share_common},
    Pass{"fuse_rotary", "one kernel instead of seven for each rotation of queries and keys",
         fuse_rotary, 23},
    Pass{"use_gemm_for_shared_weights", "an embedding that is the head as well is stored once",
         use_gemm_for_shared_weights},
    Pass{"share_common", "the constants of fused operators", share_common},
    Pass{"drop_unused", "leave nothing that the writer would have to explain", drop_unused},
};

constexpr Pipeline kPipeline{.before = kBefore, .after = kAfter, .contract = kOnnxContract};

/// Their kernel is for weights in few bits, of which both products have as many.
void fuse_experts_in_few_bits(ir::Graph& graph, const WeightQuantization& how,
                              FusionContext& context) {
  fuse_experts(graph, [&](const std::vector<ir::NamedArg>& args) {
    const auto bits = [&](std::string_view name) {
      const auto found = std::ranges::find(args, name, &ir::NamedArg::name);
      return how.bits_of(graph.value(*found->arg.get<ir::ValueId>()).name);
    };
    const auto gate_up = bits("gate_up"), down = bits("down");
    if (gate_up != down)
      context.notes.push_back({std::string(kWeightsInFewBits),
                               "both products of experts have the same bits in their kernel: "
                               "these stay floats",
                               ""});
    return gate_up == down && down != 0;
  });
}

}  // namespace

const Pipeline& onnx_pipeline() { return kPipeline; }
std::span<const RuntimeFusion> runtime_fusions() { return kForOnnxruntime; }

ir::Graph to_onnx(const ir::Graph& graph, const OnnxSettings& settings) {
  FusionContext context;
  return to_onnx(graph, settings, context);
}

ir::Graph to_onnx(const ir::Graph& graph, const OnnxSettings& settings, FusionContext& context) {
  const bool own = settings.optimize && settings.operators == Operators::onnxruntime;
  ir::Graph source = graph;
  if (settings.optimize) {
    for (const Pass& pass : kPipeline.before) pass.run(source);
  }
  if (own) {
    for (const RuntimeFusion& fusion : kForOnnxruntime) fusion.run(source, context);
  }
  const auto& few_bits = settings.quantization;
  if (few_bits && few_bits->inputs == InputCodes::none && !few_bits->only_stored)
    fuse_experts_in_few_bits(source, *few_bits, context);
  ir::Graph lowered = lower_to(OnnxTarget{.opset = settings.opset, .for_onnxruntime = own}, source);
  if (settings.quantization) {
    WeightQuantization how = *settings.quantization;
    how.own_gather = settings.operators == Operators::onnxruntime;
    share_common(lowered);
    (how.inputs == InputCodes::none ? quantize_weights : quantize_products)(lowered, how, context);
    drop_unused(lowered);
  }
  if (settings.keep_weights) use_gemm_for_all_weights(lowered);
  if (settings.optimize) {
    for (const Pass& pass : kPipeline.after) {
      if (settings.opset >= pass.since_opset) pass.run(lowered);
    }
  }
  if (own) {
    for (const RuntimeFusion& fusion : kForOnnxruntimeAfter) fusion.run(lowered, context);
    // Linked weights would be joined by onnxruntime, each time it loads the file.
    if (!settings.keep_weights) join_products(lowered, context);
  }
  if (settings.last_logits) keep_last_tokens(lowered, context);
  if (own && settings.processor == Processor::x86_64) attend_single_tokens(lowered, context);
  if (settings.limits_in_graph) put_limits_into_graph(lowered, settings.opset);
  hold(lowered, kPipeline.contract);
  return lowered;
}

}  // namespace modelport::passes
