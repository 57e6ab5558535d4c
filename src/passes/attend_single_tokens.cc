// Attention on a cache, of a token by itself. onnxruntime's kernel goes through the cache block by
// block. For many tokens that is quick; for one it is code that any x86_64 processor runs. Where
// there are sinks the kernel takes MLAS's products instead, which know AVX: of one row they do if
// no factor is left to them (sgemm.cpp: M == 1, alpha == 1). So a token by itself gets sinks that
// add nothing, and its query is scaled before. For ARM MLAS has no such products of keys.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "ir/lexical.h"
#include "passes/onnx_passes.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kAttention = "com.microsoft.GroupQueryAttention";
constexpr std::string_view kFusion = "attention of single tokens for x86_64";
/// Places among the inputs of the kernel.
constexpr std::size_t kQuery = 0, kPastKey = 3, kSinks = 11;

class SingleTokens {
 public:
  SingleTokens(const ir::Graph& graph, FusionContext& context)
      : graph_(graph), context_(context), rebuild_(graph) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op != kAttention) {
        rebuild_.copy(node);
        continue;
      }
      const bool is_f32 = type(node, kQuery).dtype == Dtype::f32;
      const std::string objection = is_f32 ? "" : "the kernel has other products in this type";
      context_.notes.push_back(
          {std::string(kFusion), objection, graph_.place(node.place).module_path});
      if (!is_f32) {
        rebuild_.copy(node);
      } else if (goes_by_blocks(node)) {
        branch(node);
      } else {
        scale_before(node);
      }
    }
    return std::move(rebuild_).finish();
  }

 private:
  const ir::TensorType& type(const ir::Node& node, std::size_t input) const {
    return graph_.value(input_of(node, input)).tensor();
  }

  static bool goes_by_blocks(const ir::Node& node) {
    const ir::Arg* causal = node.find("causal");
    const bool looks_ahead = causal != nullptr && *causal == ir::Arg{shape::Int(0)};
    return node.find("softcap") == nullptr && input_of(node, kSinks) == ir::ValueId{} &&
           !looks_ahead;
  }

  double scale(const ir::Node& node) const {
    if (const ir::Arg* given = node.find("scale")) return *given->get<double>();
    return 1.0 / std::sqrt(static_cast<double>(type(node, kPastKey).shape[3].constant().value()));
  }

  /// The attributes but for the inputs, with this scale.
  static std::vector<ir::NamedArg> attributes(const ir::Node& node, double scale) {
    std::vector<ir::NamedArg> result;
    for (const ir::NamedArg& named : node.args) {
      if (named.name != "inputs" && named.name != "scale") result.push_back(named);
    }
    result.push_back({"scale", {scale}});
    return result;
  }

  ir::ArgList inputs(const ir::Node& node) const {
    return *rebuild_.translated(*node.find("inputs")).get<ir::ArgList>();
  }

  void replace(const ir::Node& node, std::string op, std::vector<ir::NamedArg> args) {
    std::vector<ir::Type> types;
    for (const ir::ValueId result : node.results) types.push_back(graph_.value(result).type);
    const auto made = rebuild_.add(std::move(op), std::move(args), std::move(types), node.place);
    for (std::size_t i = 0; i < made.size(); ++i) rebuild_.replace(node.results[i], made[i]);
  }

  /// It has no blocks to begin with, for any number of tokens.
  void scale_before(const ir::Node& node) {
    ir::ArgList given = inputs(node);
    if (scale(node) != 1.0) {
      const ir::ValueId query = *given[kQuery].get<ir::ValueId>();
      given[kQuery] = {rebuild_.emit("onnx.Mul", {query, number(scale(node))}, {},
                                     type(node, kQuery), node.place)};
    }
    std::vector<ir::NamedArg> args = attributes(node, 1.0);
    args.insert(args.begin(), {"inputs", {std::move(given)}});
    replace(node, node.op, std::move(args));
  }

  void branch(const ir::Node& node) {
    // A line calls the operands of the kernel by their places here, behind the condition.
    ir::ArgList given = inputs(node);
    std::vector<std::string> operands;
    for (std::size_t i = 0; i < given.size(); ++i)
      operands.push_back(given[i].is_none() ? "" : fmt::format("input_{}", i + 1));
    given.insert(given.begin(), {is_single(type(node, kQuery).shape[1], given[kQuery])});
    const auto added = [&](ir::ValueId value) {
      given.push_back({value});
      return fmt::format("input_{}", given.size() - 1);
    };
    const std::string otherwise = line(operands, attributes(node, scale(node)));
    ir::ArgList single;
    if (scale(node) != 1.0) {
      const std::string factor = added(number(scale(node)));
      single.push_back({fmt::format("scaled = Mul({}, {})", operands[kQuery], factor)});
      operands[kQuery] = "scaled";
    }
    operands.resize(kSinks);
    operands.push_back(added(no_sinks(*node.find("num_heads")->get<shape::Int>())));
    single.push_back({line(operands, attributes(node, 1.0))});
    replace(node, "onnx.If",
            {{"inputs", {std::move(given)}},
             {"then", {std::move(single)}},
             {"else", {ir::ArgList{{otherwise}}}}});
  }

  /// A line as inner graphs have them (backends/onnx/inner_graph.h).
  static std::string line(const std::vector<std::string>& operands,
                          const std::vector<ir::NamedArg>& attributes) {
    std::string numbers;
    for (const ir::NamedArg& named : attributes) {
      numbers += fmt::format("{}{}=", numbers.empty() ? "" : ", ", named.name);
      if (const double* real = named.arg.get<double>()) {
        ir::append_number(numbers, *real);
      } else {
        ir::append_number(numbers, named.arg.get<shape::Int>()->constant().value());
      }
    }
    return fmt::format("result_0, result_1, result_2 = {}({}) {{{}}}", kAttention,
                       fmt::join(operands, ", "), numbers);
  }

  /// Whether there is one token of a row, which layers ask together.
  ir::ValueId is_single(const shape::Int& tokens, const ir::Arg& query) {
    const auto [known, is_new] = single_.try_emplace(shape::print(tokens));
    if (is_new) {
      const shape::Int one(1);
      const ir::ValueId count =
          rebuild_.emit("onnx.Shape", {*query.get<ir::ValueId>()},
                        {{"start", {one}}, {"end", {shape::Int(2)}}}, {Dtype::i64, {one}}, {});
      known->second =
          rebuild_.emit("onnx.Equal", {count, rebuild_.ints({1})}, {}, {Dtype::boolean, {one}}, {});
    }
    return known->second;
  }

  ir::ValueId number(double value) { return rebuild_.number(value, Dtype::f32); }

  ir::ValueId no_sinks(const shape::Int& heads) {
    const ir::Arg none{-std::numeric_limits<double>::infinity()};
    const auto count = static_cast<std::size_t>(heads.constant().value());
    return rebuild_.emit("onnx.Constant", {},
                         {{"dtype", {Dtype::f32}},
                          {"shape", {ir::ArgList{{heads}}}},
                          {"values", {ir::ArgList(count, none)}}},
                         {Dtype::f32, {heads}}, {});
  }

  const ir::Graph& graph_;
  FusionContext& context_;
  Rebuild rebuild_;
  std::map<std::string, ir::ValueId> single_;  // by the number of tokens
};

}  // namespace

void attend_single_tokens(ir::Graph& graph, FusionContext& context) {
  graph = SingleTokens(graph, context).run();
  share_common(graph);  // layers have their factor and their sinks alike
}

}  // namespace modelport::passes
