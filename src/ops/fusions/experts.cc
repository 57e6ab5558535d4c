// A mixture of experts, as transformers computes it on whichever experts were chosen: tokens are
// sorted by expert, multiplied in groups, and put back in order.
#include "ops/fusions/fusion.h"

namespace modelport::ops::fusions {
namespace {

const ir::Node* producer(const ir::Graph& graph, ir::ValueId id, std::string_view op,
                         std::size_t result = 0) {
  if (graph.value(id).origin != ir::Origin::node) return nullptr;
  const ir::Node& node = graph.node(graph.value(id).producer);
  return node.op == op && node.results[result] == id ? &node : nullptr;
}

ir::ValueId argument(const ir::Node& node, std::string_view name) {
  const ir::Arg* arg = node.find(name);
  const ir::ValueId* id = arg == nullptr ? nullptr : arg->get<ir::ValueId>();
  return id == nullptr ? ir::ValueId{} : *id;
}

bool is(const ir::Node& node, std::string_view name, std::int64_t number) {
  const ir::Arg* arg = node.find(name);
  return arg != nullptr && *arg == ir::Arg{shape::Int(number)};
}

/// The experts that were chosen, [tokens, k]: what was sorted into `order`.
const ir::Node* sorted(const Found& found) {
  const ir::Node* sort = producer(found.graph(), found.value("order"), "aten.sort", 1);
  return sort != nullptr && sort->find("descending") == nullptr && sort->find("dim") == nullptr
             ? sort
             : nullptr;
}

ir::ValueId chosen(const Found& found) {
  const ir::Node* sort = sorted(found);
  const ir::Node* flat =
      sort == nullptr ? nullptr : producer(found.graph(), argument(*sort, "self"), "aten.reshape");
  return flat == nullptr ? ir::ValueId{} : argument(*flat, "self");
}

/// How many tokens each expert has, summed up: ends of the groups.
bool counts_the_sorted(const Found& found, std::int64_t experts) {
  const ir::Graph& graph = found.graph();
  const ir::Node* ends = producer(graph, found.value("ends"), "aten.cumsum");
  if (ends == nullptr || !is(*ends, "dim", 0)) return false;
  const ir::Node* counts = producer(graph, argument(*ends, "self"), "aten.histc");
  if (counts == nullptr || !is(*counts, "bins", experts) || counts->find("min") != nullptr)
    return false;
  const ir::Arg* most = counts->find("max");
  if (most == nullptr || !(*most == ir::Arg{shape::Int(experts - 1)} ||
                           *most == ir::Arg{static_cast<double>(experts - 1)}))
    return false;
  ir::ValueId of = argument(*counts, "self");
  if (const ir::Node* cast = producer(graph, of, "aten.to.dtype")) of = argument(*cast, "self");
  return of == sorted(found)->results[0];
}

/// The product before the gate, and through it the tokens and the first weight.
struct Before {
  ir::ValueId tokens, weight;
};
std::optional<Before> before_gate(const Found& found) {
  const ir::Graph& graph = found.graph();
  const ir::Node* halves = producer(graph, found.value("gate"), "aten.chunk");
  if (halves == nullptr || halves->results.size() != 2 || halves->results[1] != found.value("up") ||
      !is(*halves, "dim", -1) || !is(*halves, "chunks", 2))
    return std::nullopt;
  const ir::Node* product =
      producer(graph, argument(*halves, "self"), "transformers.grouped_mm_fallback");
  if (product == nullptr || argument(*product, "offs") != found.value("ends")) return std::nullopt;
  const ir::Node* turned = producer(graph, argument(*product, "weight"), "aten.transpose.int");
  if (turned == nullptr || !is(*turned, "dim0", -2) || !is(*turned, "dim1", -1))
    return std::nullopt;
  const ir::Node* taken = producer(graph, argument(*product, "input"), "aten.index.Tensor");
  const auto* rows = taken == nullptr ? nullptr : taken->find("indices")->get<ir::ArgList>();
  if (rows == nullptr || rows->size() != 1 || (*rows)[0].get<ir::ValueId>() == nullptr)
    return std::nullopt;
  const ir::Node* token = producer(graph, *(*rows)[0].get<ir::ValueId>(), "aten.floor_divide");
  const auto& shares = found.type("shares").shape;
  if (token == nullptr || argument(*token, "self") != found.value("order") || shares.size() != 2 ||
      !shares[1].constant() || !is(*token, "other", *shares[1].constant()))
    return std::nullopt;
  return Before{argument(*taken, "self"), argument(*turned, "self")};
}

/// Columns that share a scale, at least: a row has no part of one.
constexpr std::int64_t kLeastBlock = 16;

bool is_weight(const Found& found, ir::ValueId id) {
  if (id == ir::ValueId{} || found.graph().value(id).origin != ir::Origin::weight) return false;
  const ir::TensorType& type = found.graph().value(id).tensor();
  return type.dtype == Dtype::f32 && type.shape.size() == 3 &&
         type.shape[2].constant().value_or(1) % kLeastBlock == 0;
}

bool are_experts(const Found& found) {
  for (const char* name : {"gate", "up", "order", "shares", "down", "ends"})
    if (!found.is_value(name)) return false;
  const ir::ValueId picked = chosen(found);
  const auto before = before_gate(found);
  if (picked == ir::ValueId{} || !before || !is_weight(found, before->weight) ||
      !is_weight(found, found.value("down")))
    return false;
  const ir::Graph& graph = found.graph();
  const auto experts = graph.value(before->weight).tensor().shape[0].constant();
  return experts && graph.value(picked).tensor().shape == found.type("shares").shape &&
         graph.value(before->tokens).tensor().shape.size() == 2 &&
         counts_the_sorted(found, *experts);
}

std::vector<ir::NamedArg> expert_args(const Found& found, const ir::Node&) {
  const auto before = before_gate(found);
  return {{"tokens", {before->tokens}},
          {"shares", found.arg("shares")},
          {"chosen", {chosen(found)}},
          {"gate_up", {before->weight}},
          {"down", found.arg("down")}};
}

}  // namespace

std::span<const Fusion> experts() {
  static const std::vector<Fusion> rows{
      {.name = "experts",
       .pattern = "aten.sum.dim_IntList(dim=[1], self=aten.view(size=_, self=aten.index.Tensor("
                  "indices=[aten.index_put(self=_, indices=[order], values=aten.arange(end=_))], "
                  "self=aten.mul.Tensor(self=transformers.grouped_mm_fallback("
                  "input=aten.mul.Tensor(self=aten.silu(self=gate), other=up), "
                  "weight=aten.transpose.int(self=down, dim0=-2, dim1=-1), offs=ends), "
                  "other=aten.unsqueeze(dim=-1, self=aten.index.Tensor("
                  "self=aten.reshape(self=shares, shape=_), indices=[order]))))))",
       .guard = are_experts,
       .op = "modelport.experts",
       .args = expert_args},
  };
  return rows;
}

}  // namespace modelport::ops::fusions
