// Arithmetic on small constants, done once, before the file is written.
#include <algorithm>
#include <cmath>

#include "passes/constants.h"
#include "passes/onnx_passes.h"
#include "passes/rewrite.h"

namespace modelport::passes {
namespace {

/// What is larger is a weight in all but name, and stays an operator on one.
constexpr std::size_t kMost = 1024;

bool holds_reals(Dtype dtype) { return is_floating(dtype); }

/// f32 arithmetic is done in f32, as the runtime would.
double rounded(Dtype dtype, double x) {
  return dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(x)) : x;
}

std::optional<std::int64_t> integer_result(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (op == "onnx.Add")
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "onnx.Sub")
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "onnx.Mul")
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "onnx.Div" && b > 0) return a / b;
  return std::nullopt;
}

std::optional<double> real_result(std::string_view op, double a, double b) {
  if (op == "onnx.Add") return a + b;
  if (op == "onnx.Sub") return a - b;
  if (op == "onnx.Mul") return a * b;
  if (op == "onnx.Div") return a / b;
  return std::nullopt;
}

class Folder {
 public:
  explicit Folder(ir::Graph& graph) : graph_(graph) {}

  void run() {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      ir::Node& node = graph_.node({i});
      if (node.op == "onnx.Constant" || node.results.size() != 1) continue;
      if (const auto folded = fold(node)) make_constant(node, *folded);
    }
  }

 private:
  std::optional<Constant> fold(const ir::Node& node) const {
    const auto a = constant_of(graph_, input_of(node, 0));
    if (!a || a->size() > kMost) return std::nullopt;
    const ir::TensorType& type = graph_.value(node.results[0]).tensor();
    if (type.dtype == Dtype::f16 || type.dtype == Dtype::bf16) return std::nullopt;
    std::vector<std::int64_t> shape;
    for (const shape::Int& size : type.shape) {
      if (!size.constant()) return std::nullopt;
      shape.push_back(*size.constant());
    }
    if (node.op == "onnx.Cast") return cast(*a, type.dtype);
    if (node.op == "onnx.Reshape" || node.op == "onnx.Squeeze" || node.op == "onnx.Unsqueeze") {
      Constant result = *a;
      result.shape = shape;
      return result;
    }
    if (node.op == "onnx.Expand" && a->size() == 1) return repeated(*a, shape);
    if (node.op == "onnx.Concat") return joined(node, shape);
    if (input_count(node) != 2) return std::nullopt;
    const auto b = constant_of(graph_, input_of(node, 1));
    return b && b->size() <= kMost ? arithmetic(node.op, *a, *b, shape) : std::nullopt;
  }

  static std::optional<Constant> cast(const Constant& a, Dtype to) {
    Constant result{.dtype = to, .shape = a.shape, .integers = {}, .reals = {}};
    if (is_complex(to) || to == Dtype::u64 || a.dtype == Dtype::u64) return std::nullopt;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (holds_reals(to)) {
        result.reals.push_back(rounded(to, a.at(i)));
      } else if (to == Dtype::boolean) {
        result.integers.push_back(a.at(i) != 0 ? 1 : 0);
      } else if (!a.reals.empty()) {
        if (!(std::abs(a.reals[i]) < 2e9)) return std::nullopt;
        result.integers.push_back(static_cast<std::int64_t>(a.reals[i]));
      } else {
        if (byte_size(to) < 8 && std::abs(a.integers[i]) > 127 &&
            byte_size(to) < byte_size(a.dtype) &&
            (byte_size(to) != 4 || std::abs(a.integers[i]) > INT32_MAX))
          return std::nullopt;
        result.integers.push_back(a.integers[i]);
      }
    }
    return result;
  }

  static std::optional<Constant> repeated(const Constant& a,
                                          const std::vector<std::int64_t>& shape) {
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    if (count == 0 || count > 16) return std::nullopt;
    Constant result{.dtype = a.dtype, .shape = shape, .integers = {}, .reals = {}};
    if (a.reals.empty()) {
      result.integers.assign(count, a.integers[0]);
    } else {
      result.reals.assign(count, a.reals[0]);
    }
    return result;
  }

  /// Lists put after one another; anything with more axes is left alone.
  std::optional<Constant> joined(const ir::Node& node,
                                 const std::vector<std::int64_t>& shape) const {
    if (shape.size() != 1) return std::nullopt;
    Constant result;
    for (std::size_t i = 0; i < input_count(node); ++i) {
      const auto part = constant_of(graph_, input_of(node, i));
      if (!part || result.size() + part->size() > kMost) return std::nullopt;
      result.dtype = part->dtype;
      result.integers.insert(result.integers.end(), part->integers.begin(), part->integers.end());
      result.reals.insert(result.reals.end(), part->reals.begin(), part->reals.end());
    }
    result.shape = shape;
    return result;
  }

  /// Of tensors of one shape, or with one number on a side.
  static std::optional<Constant> arithmetic(std::string_view op, const Constant& a,
                                            const Constant& b,
                                            const std::vector<std::int64_t>& shape) {
    const std::size_t count = std::max(a.size(), b.size());
    const bool fits = (a.size() == count || a.size() == 1) &&
                      (b.size() == count || b.size() == 1) &&
                      (a.size() == 1 || b.size() == 1 || a.shape == b.shape);
    if (!fits || a.dtype == Dtype::boolean) return std::nullopt;
    Constant result{.dtype = a.dtype, .shape = shape, .integers = {}, .reals = {}};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t left = a.size() == 1 ? 0 : i;
      const std::size_t right = b.size() == 1 ? 0 : i;
      if (holds_reals(a.dtype)) {
        const auto number = real_result(op, a.at(left), b.at(right));
        if (!number) return std::nullopt;
        result.reals.push_back(rounded(a.dtype, *number));
      } else {
        const auto number = integer_result(op, a.integers[left], b.integers[right]);
        if (!number || (a.dtype == Dtype::i32 && std::abs(*number) > INT32_MAX))
          return std::nullopt;
        result.integers.push_back(*number);
      }
    }
    return result;
  }

  ir::Graph& graph_;
};

}  // namespace

void fold_constants(ir::Graph& graph) { Folder(graph).run(); }

}  // namespace modelport::passes
