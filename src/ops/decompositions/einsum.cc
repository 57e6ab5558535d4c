// torch.einsum as transposes and matrix products, one operand after the other.
#include "ops/rules/einsum.h"

#include <algorithm>

#include "ops/decompositions/linear.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

struct Labelled {
  Value value;
  std::string labels;

  bool has(char label) const { return labels.find(label) != std::string::npos; }
};

bool is_in(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

Int label_size(Emitter& e, const Labelled& term, char label) {
  return e.shape(term.value)[term.labels.find(label)];
}

Shape label_sizes(Emitter& e, const Labelled& term, const std::string& labels) {
  Shape shape;
  for (const char label : labels) shape.push_back(label_size(e, term, label));
  return shape;
}

Labelled reordered(Emitter& e, const Labelled& term, const std::string& labels) {
  Axes order;
  for (const char label : labels)
    order.push_back(static_cast<std::int64_t>(term.labels.find(label)));
  return {permuted(e, term.value, order), labels};
}

/// A label that occurs twice in a term stands for its diagonal.
Labelled with_labels_once(Emitter& e, Labelled term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    for (std::size_t k = i + 1; k < term.labels.size();) {
      if (term.labels[k] != term.labels[i]) {
        ++k;
        continue;
      }
      const char label = term.labels[i];
      term.value = e.call("aten.diagonal", {term.value, 0, static_cast<std::int64_t>(i),
                                            static_cast<std::int64_t>(k)});
      term.labels.erase(k, 1);
      term.labels.erase(i, 1);
      term.labels.push_back(label);
      return with_labels_once(e, term);
    }
  }
  return term;
}

/// Sums over labels that nobody else needs.
Labelled summed_but(Emitter& e, const Labelled& term, const std::string& needed) {
  Axes axes;
  std::string kept;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (is_in(needed, term.labels[i])) {
      kept.push_back(term.labels[i]);
    } else {
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  return {sum_over(e, term.value, axes), kept};
}

/// Axes of one element whose label the other term has too say nothing.
Labelled without_idle_axes(Emitter& e, const Labelled& term, const Labelled& other) {
  Shape shape;
  std::string kept;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const Int size = e.shape(term.value)[i];
    if (other.has(term.labels[i]) && size == Int(1)) continue;
    shape.push_back(size);
    kept.push_back(term.labels[i]);
  }
  return {viewed(e, term.value, shape), kept};
}

Labelled multiplied(Emitter& e, const Labelled& a, const Labelled& b, const std::string& order) {
  const auto aligned = [&](const Labelled& term) {
    std::string own;
    for (const char label : order) {
      if (term.has(label)) own.push_back(label);
    }
    const Labelled moved = reordered(e, term, own);
    Shape shape;
    for (const char label : order)
      shape.push_back(term.has(label) ? label_size(e, moved, label) : Int(1));
    return viewed(e, moved.value, shape);
  };
  return {mul(e, aligned(a), aligned(b)), order};
}

Labelled contracted(Emitter& e, Labelled a, Labelled b, const std::string& needed,
                    const std::string& wished) {
  a = summed_but(e, a, needed + b.labels);
  b = summed_but(e, b, needed + a.labels);
  const Labelled plain = without_idle_axes(e, a, b);
  b = without_idle_axes(e, b, plain);
  a = summed_but(e, plain, needed + b.labels);
  b = summed_but(e, b, needed + a.labels);
  std::string batch, left, right, inner;
  for (const char label : a.labels)
    (!b.has(label) ? left : is_in(needed, label) ? batch : inner).push_back(label);
  for (const char label : b.labels) {
    if (!a.has(label)) right.push_back(label);
  }
  if (inner.empty()) {
    std::string order;
    for (const char label : wished) {
      if (a.has(label) || b.has(label)) order.push_back(label);
    }
    const bool all = order.size() == batch.size() + left.size() + right.size();
    return multiplied(e, a, b, all ? order : batch + left + right);
  }
  const auto place = [&](const std::string& labels) {
    return labels.empty() ? std::string::npos : wished.find(labels[0]);
  };
  if (place(right) < place(left)) {  // the side that comes first in the result goes first
    std::swap(a, b);
    std::swap(left, right);
  }
  const Shape rows = label_sizes(e, a, left);
  const Shape columns = label_sizes(e, b, right);
  const Shape groups = label_sizes(e, a, batch);
  const Int width = numel(label_sizes(e, a, inner));
  const Value first =
      viewed(e, reordered(e, a, batch + left + inner).value, joined(groups, {numel(rows), width}));
  const Value second = viewed(e, reordered(e, b, batch + inner + right).value,
                              joined(groups, {width, numel(columns)}));
  return {viewed(e, product(e, first, second), joined(joined(groups, rows), columns)),
          batch + left + right};
}

}  // namespace

Value einsum(Emitter& e) {
  const Values operands = e.ins("tensors");
  std::vector<Shape> shapes;
  for (const Value operand : operands) shapes.push_back(e.shape(operand));
  const Equation equation = read_equation(e.call(), e.call().string("equation"), shapes);
  Labelled whole = with_labels_once(e, {operands[0], equation.operands[0]});
  for (std::size_t i = 1; i < operands.size(); ++i) {
    std::string needed = equation.result;
    for (std::size_t k = i + 1; k < operands.size(); ++k) needed += equation.operands[k];
    const Labelled next = with_labels_once(e, {operands[i], equation.operands[i]});
    whole = contracted(e, whole, next, needed, equation.result);
  }
  return reordered(e, summed_but(e, whole, equation.result), equation.result).value;
}

}  // namespace modelport::ops::parts
