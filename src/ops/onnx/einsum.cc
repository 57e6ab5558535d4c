// torch.einsum as transposes and matrix products, one operand after the other.
#include "ops/rules/einsum.h"

#include <algorithm>

#include "ops/onnx/pointwise.h"
#include "ops/onnx/product.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

struct Term {
  Value value;
  std::string labels;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

Int size_of(Lower& l, const Term& term, char label) {
  return l.shape(term.value)[term.labels.find(label)];
}

Term in_order(Lower& l, const Term& term, const std::string& labels) {
  std::vector<std::int64_t> order;
  for (const char label : labels)
    order.push_back(static_cast<std::int64_t>(term.labels.find(label)));
  return {l.transpose(term.value, order), labels};
}

/// A label that occurs twice in a term stands for its diagonal.
Term diagonal(Lower& l, const Term& term) {
  std::string once;
  for (const char label : term.labels) {
    if (!has(once, label)) once.push_back(label);
  }
  if (once == term.labels) return term;
  if (is_complex(l.dtype(term.value))) l.refuse("the diagonal of a complex tensor");
  const auto letters = [&](const std::string& labels) {
    std::string text;
    for (const char label : labels) text.push_back(static_cast<char>('a' + once.find(label)));
    return text;
  };
  Shape shape;
  for (const char label : once) shape.push_back(size_of(l, term, label));
  const std::string equation = letters(term.labels) + "->" + letters(once);
  return {l.emit("Einsum", {term.value}, {{"equation", {equation}}}, {l.dtype(term.value), shape}),
          once};
}

/// Sums over labels that nobody else needs.
Term without(Lower& l, const Term& term, const std::string& needed) {
  std::vector<std::int64_t> axes;
  std::string kept;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (has(needed, term.labels[i])) {
      kept.push_back(term.labels[i]);
    } else {
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  return {sum_over(l, term.value, axes), kept};
}

/// Axes of one element whose label the other term has too say nothing.
Term without_ones(Lower& l, const Term& term, const Term& other) {
  std::vector<std::int64_t> axes;
  std::string kept;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (has(other.labels, term.labels[i]) && l.shape(term.value)[i] == Int(1)) {
      axes.push_back(static_cast<std::int64_t>(i));
    } else {
      kept.push_back(term.labels[i]);
    }
  }
  return {l.squeeze(term.value, axes), kept};
}

struct Split {
  std::string batch, left, right, summed;
};

Split split(const Term& a, const Term& b, const std::string& needed) {
  Split found;
  for (const char label : a.labels) {
    const bool shared = has(b.labels, label);
    (!shared ? found.left : has(needed, label) ? found.batch : found.summed).push_back(label);
  }
  for (const char label : b.labels) {
    if (!has(a.labels, label)) found.right.push_back(label);
  }
  return found;
}

/// Multiplied element by element: nothing is summed.
Term multiplied(Lower& l, const Term& a, const Term& b, const std::string& order) {
  const auto aligned = [&](const Term& term) {
    std::string own;
    std::vector<std::int64_t> missing;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (has(term.labels, order[i])) {
        own.push_back(order[i]);
      } else {
        missing.push_back(static_cast<std::int64_t>(i));
      }
    }
    return l.unsqueeze(in_order(l, term, own).value, missing);
  };
  return {times(l, aligned(a), aligned(b)), order};
}

Shape sizes_of(Lower& l, const Term& term, const std::string& labels) {
  Shape shape;
  for (const char label : labels) shape.push_back(size_of(l, term, label));
  return shape;
}

Term contracted(Lower& l, const Term& a, const Term& b, const Split& s) {
  const Shape rows = sizes_of(l, a, s.left);
  const Shape columns = sizes_of(l, b, s.right);
  const Int inner = numel(sizes_of(l, a, s.summed));
  const Value left = l.reshape(in_order(l, a, s.batch + s.left + s.summed).value,
                               joined(sizes_of(l, a, s.batch), {numel(rows), inner}));
  const Value right = l.reshape(in_order(l, b, s.batch + s.summed + s.right).value,
                                joined(sizes_of(l, b, s.batch), {inner, numel(columns)}));
  const Value y = product(l, left, right);
  const Shape batch(l.shape(y).begin(), l.shape(y).end() - 2);
  return {l.reshape(y, joined(joined(batch, rows), columns)), s.batch + s.left + s.right};
}

Term combined(Lower& l, Term a, Term b, const std::string& needed, const std::string& wished) {
  a = without(l, a, needed + b.labels);
  b = without(l, b, needed + a.labels);
  const Term plain_a = without_ones(l, a, b);
  b = without_ones(l, b, plain_a);
  a = without(l, plain_a, needed + b.labels);
  b = without(l, b, needed + a.labels);
  const Split s = split(a, b, needed);
  if (s.summed.empty()) {
    std::string order;
    for (const char label : wished) {
      if (has(a.labels, label) || has(b.labels, label)) order.push_back(label);
    }
    const bool all = order.size() == s.batch.size() + s.left.size() + s.right.size();
    return multiplied(l, a, b, all ? order : s.batch + s.left + s.right);
  }
  // The side whose axes come first in the result goes first: that saves a transpose.
  const auto first_of = [&](const std::string& labels) {
    return labels.empty() ? std::string::npos : wished.find(labels[0]);
  };
  if (first_of(s.right) < first_of(s.left)) return contracted(l, b, a, split(b, a, needed));
  return contracted(l, a, b, s);
}

}  // namespace

Values einsum(Lower& l) {
  Values operands = l.ins("tensors");
  std::vector<Shape> shapes;
  for (const Value operand : operands) shapes.push_back(l.shape(operand));
  const Equation equation = read_equation(l.call(), l.call().string("equation"), shapes);
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  Term whole = diagonal(l, {l.cast(operands[0], wide), equation.operands[0]});
  for (std::size_t i = 1; i < operands.size(); ++i) {
    std::string needed = equation.result;
    for (std::size_t k = i + 1; k < operands.size(); ++k) needed += equation.operands[k];
    const Term next = diagonal(l, {l.cast(operands[i], wide), equation.operands[i]});
    whole = combined(l, whole, next, needed, equation.result);
  }
  whole = in_order(l, without(l, whole, equation.result), equation.result);
  return {l.cast(whole.value, own)};
}

}  // namespace modelport::ops::onnx
