// Fusions into operators of onnxruntime's own. They run on the captured graph, and only where
// `OnnxSettings::operators` asks for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/fusions/elements.h"

namespace modelport::passes {

/// One place where a fusion was made, or where it was not, and why.
struct FusionNote {
  std::string fusion;
  std::string objection;  // empty: it was made
  std::string module_path;
};

struct FusionContext {
  ops::fusions::KnownNumbers known = {};
  std::int64_t context_length = 0;  // tokens that tables of positions are made for; 0: unknown
  std::vector<FusionNote> notes = {};
  /// Computes the weights that fusions added, its outputs by name, from 0, 1, 2, ...
  std::optional<ir::Graph> tables = {};
};

struct RuntimeFusion {
  std::string_view name;
  std::string_view why;
  void (*run)(ir::Graph& graph, FusionContext& context);
};

/// Attention that appends to its cache becomes attention on a cache in place. Positions and masks
/// that nothing needs any more go; the cache may be longer than the tokens in it.
void put_caches_in_place(ir::Graph& graph, FusionContext& context);
/// Convolutions over a state and new tokens become one operator that gives the next state, too.
void carry_convolutions(ir::Graph& graph, FusionContext& context);
/// On the graph of ONNX operators: a sum and the norm of it become one node that gives both, where
/// that is quicker, and are kept apart where it is not.
void fuse_skip_norms(ir::Graph& graph, FusionContext& context);
/// On the graph of ONNX operators: attention takes heads side by side, as the products around it
/// have them.
void fuse_heads(ir::Graph& graph, FusionContext& context);
/// On the graph of ONNX operators: a product with a weight as it is stored takes its tensor as it
/// is.
void fuse_flat_products(ir::Graph& graph, FusionContext& context);
/// On the graph of ONNX operators, where it decodes: products of one tensor with several weights
/// become one, which stands in the file.
void join_products(ir::Graph& graph, FusionContext& context);
/// On the graph of ONNX operators: of what the logits alone are made from, the last token of each
/// row is computed, and logits are [batch, 1, vocabulary]. An initializer, modelport.all_logits,
/// brings the others back.
void keep_last_tokens(ir::Graph& graph, FusionContext& context);
/// On the graph of ONNX operators: attention on a cache has a branch of its own for one token, in
/// which it is quicker on x86_64 processors.
void attend_single_tokens(ir::Graph& graph, FusionContext& context);

}  // namespace modelport::passes
