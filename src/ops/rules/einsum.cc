// The shape of torch.einsum's result: labels, ellipses, repeated and broadcast axes.
#include "ops/rules/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

namespace modelport::ops {
namespace {

constexpr char kEllipsis = '.';  // stands for "..." once a term is read

std::string read_term(Call& call, std::string_view text) {
  std::string labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i).starts_with("...")) {
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    call.require(std::isalpha(static_cast<unsigned char>(text[i])) != 0,
                 "einsum labels are letters");
    labels.push_back(text[i]);
  }
  return labels;
}

std::vector<std::string> read_terms(Call& call, std::string_view text) {
  std::vector<std::string> terms;
  while (true) {
    const std::size_t comma = text.find(',');
    terms.push_back(read_term(call, text.substr(0, comma)));
    if (comma == std::string_view::npos) return terms;
    text.remove_prefix(comma + 1);
  }
}

/// Sizes by label; what the ellipses of all operands broadcast to.
struct Labels {
  std::map<char, Int> sizes;
  std::map<char, int> uses;
  Shape ellipsis;

  void add(Call& call, char label, const Int& size) {
    const auto [at, is_new] = sizes.emplace(label, size);
    if (!is_new) at->second = broadcast(call, at->second, size);
    ++uses[label];
  }
};

void read_operand(Call& call, const std::string& term, const Shape& shape, Labels& labels) {
  const bool dots = term.find(kEllipsis) != std::string::npos;
  const std::size_t named = term.size() - (dots ? 1 : 0);
  call.require(dots ? named <= shape.size() : named == shape.size(),
               "einsum operand with another number of axes than labels");
  std::size_t axis = 0;
  for (const char label : term) {
    if (label != kEllipsis) {
      labels.add(call, label, shape[axis++]);
      continue;
    }
    const std::size_t covered = shape.size() - named;
    const Shape part(shape.begin() + static_cast<std::ptrdiff_t>(axis),
                     shape.begin() + static_cast<std::ptrdiff_t>(axis + covered));
    labels.ellipsis = broadcast(call, labels.ellipsis, part);
    axis += covered;
  }
}

/// Without "->": the ellipsis, then the labels that occur once; upper case before lower case.
std::string implicit_output(const Labels& labels) {
  std::string output(1, kEllipsis);
  for (const auto& [label, count] : labels.uses) {
    if (count == 1) output.push_back(label);
  }
  return output;
}

}  // namespace

Equation read_equation(Call& call, std::string_view equation, const std::vector<Shape>& shapes) {
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string> terms = read_terms(call, equation.substr(0, arrow));
  Labels labels;
  for (std::size_t i = 0; i < terms.size(); ++i) read_operand(call, terms[i], shapes[i], labels);
  const auto spelled = [](const std::string& term, std::size_t covered) {
    std::string result;
    for (const char label : term) {
      if (label != kEllipsis) {
        result.push_back(label);
        continue;
      }
      // Counted from the last one, as they broadcast.
      for (std::size_t i = covered; i > 0; --i) result.push_back(static_cast<char>(i));
    }
    return result;
  };
  Equation found;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const bool dots = terms[i].find(kEllipsis) != std::string::npos;
    found.operands.push_back(
        spelled(terms[i], shapes[i].size() + (dots ? 1 : 0) - terms[i].size()));
  }
  const std::string output = arrow == std::string_view::npos
                                 ? implicit_output(labels)
                                 : read_term(call, equation.substr(arrow + 2));
  found.result = spelled(output, labels.ellipsis.size());
  return found;
}

Shape einsum_shape(Call& call, std::string_view equation, const std::vector<Shape>& shapes) {
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string> terms = read_terms(call, equation.substr(0, arrow));
  call.require(terms.size() == shapes.size(), "einsum needs a term for each operand");
  Labels labels;
  for (std::size_t i = 0; i < terms.size(); ++i) read_operand(call, terms[i], shapes[i], labels);
  const std::string output = arrow == std::string_view::npos
                                 ? implicit_output(labels)
                                 : read_term(call, equation.substr(arrow + 2));
  Shape result;
  for (const char label : output) {
    if (label == kEllipsis) {
      result.insert(result.end(), labels.ellipsis.begin(), labels.ellipsis.end());
      continue;
    }
    const auto found = labels.sizes.find(label);
    call.require(found != labels.sizes.end(), "einsum output label that no operand has");
    result.push_back(found->second);
  }
  return result;
}

}  // namespace modelport::ops
