// Reads sample calls: "f32[a, b], i64<5>[b], 2, dim=-1".
#include "ops/table/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "ops/table/split.h"

namespace modelport::ops {
namespace {

using Symbols = std::set<std::string, std::less<>>;

class Reader {
 public:
  Reader(const OpDef& op, Sample& sample) : op_(op), sample_(sample) {}

  void read() {
    std::size_t position = 0;
    for (std::string_view part : split_outside(sample_.text, ",")) {
      const std::size_t equals = find_outside(part, "=");
      if (equals != std::string_view::npos) {
        add(trim(part.substr(0, equals)), trim(part.substr(equals + 1)));
      } else {
        const auto& parameters = schema_of(op_).parameters;
        if (position >= parameters.size()) bad("too many arguments");
        add(parameters[position++].name, part);
      }
    }
  }
  const Symbols& symbols() const { return symbols_; }

 private:
  [[noreturn]] void bad(std::string_view why) const {
    throw InternalError(fmt::format("sample '{}' of {}: {}", sample_.text, op_.name, why));
  }

  void add(std::string_view name, std::string_view text) {
    if (schema_of(op_).find(name) == nullptr) bad(fmt::format("there is no argument '{}'", name));
    sample_.args.push_back({std::string(name), value(text)});
  }

  ir::Arg value(std::string_view text) {
    if (text.empty()) bad("an empty argument");
    if (text == "None") return {};
    if (text == "True") return {true};
    if (text == "False") return {false};
    if (text.front() == '\'' || text.front() == '"') {
      return {std::string(text.substr(1, text.size() - 2))};
    }
    if (text.front() == '[') return list(text);
    const std::size_t end = std::min(text.find_first_of("<["), text.size());
    if (const auto dtype = parse_dtype(text.substr(0, end))) {
      if (end == text.size()) return {*dtype};
      return tensor(*dtype, text.substr(end));
    }
    return number(text);
  }

  ir::Arg list(std::string_view text) {
    if (text.back() != ']') bad("a list that does not end");
    ir::ArgList items;
    for (std::string_view item : split_outside(text.substr(1, text.size() - 2), ",")) {
      items.push_back(value(item));
    }
    return {std::move(items)};
  }

  ir::Arg tensor(Dtype dtype, std::string_view text) {
    TensorDraw draw;
    if (text.front() == '<') {
      const std::size_t end = text.find('>');
      if (end == std::string_view::npos) bad("a '<' without '>'");
      const ir::Arg below = number(text.substr(1, end - 1));
      if (below.get<Int>() == nullptr || !below.get<Int>()->is_constant()) bad("no number in <>");
      draw.below = *below.get<Int>()->constant();
      text.remove_prefix(end + 1);
    }
    if (!text.starts_with('[') || !text.ends_with(']')) bad("a dtype without a shape");
    ir::TensorType type{dtype, {}};
    for (std::string_view size : split_outside(text.substr(1, text.size() - 2), ",")) {
      type.shape.push_back(expression(size));
    }
    sample_.draws.push_back(draw);
    const std::string name = fmt::format("x{}", sample_.graph.inputs.size());
    return {sample_.graph.add_input(name, ir::Type(std::move(type)))};
  }

  ir::Arg number(std::string_view text) {
    const std::string copy(text);
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(copy.data(), copy.data() + copy.size(), whole);
    if (error == std::errc() && end == copy.data() + copy.size()) return {Int(whole)};
    char* stop = nullptr;
    const double real = std::strtod(copy.c_str(), &stop);
    if (stop == copy.c_str() + copy.size()) return {real};
    return {expression(text)};
  }

  Int expression(std::string_view text) {
    Int value = shape::parse_int(text);
    shape::collect_symbols(value, symbols_);
    return value;
  }

  const OpDef& op_;
  Sample& sample_;
  Symbols symbols_;
};

Symbols read_sample(const OpDef& op, std::string_view text, Sample& sample) {
  sample.text = text;
  Reader reader(op, sample);
  reader.read();
  return reader.symbols();
}

}  // namespace

Results Sample::infer(const OpDef& op) {
  return ops::infer(op, args, Call::Site{.graph = graph, .dims = dims, .place = {}});
}

std::vector<Sample> samples_of(const OpDef& op, const shape::Bindings& sizes) {
  std::vector<Sample> samples;
  for (std::string_view text : split_outside(op.samples, ";")) {
    Sample& sample = samples.emplace_back();
    for (const std::string& symbol : read_sample(op, text, sample)) {
      const auto size = sizes.find(symbol);
      if (size == sizes.end()) {
        throw InternalError(
            fmt::format("sample '{}' of {}: no size for {}", text, op.name, symbol));
      }
      const std::int64_t lowest = std::min<std::int64_t>(size->second, 1);
      sample.dims.declare(symbol, size->second, {lowest, shape::Range::kUnbounded});
    }
  }
  return samples;
}

std::vector<std::string> sample_symbols(const OpDef& op) {
  Symbols all;
  for (std::string_view text : split_outside(op.samples, ";")) {
    Sample sample;
    all.merge(read_sample(op, text, sample));
  }
  return {all.begin(), all.end()};
}

std::vector<shape::Bindings> sample_sizes(const OpDef& op) {
  std::vector<shape::Bindings> rounds(3);
  std::int64_t index = 0;
  for (const std::string& symbol : sample_symbols(op)) {
    rounds[0][symbol] = 4 + index;
    rounds[1][symbol] = 7 + 2 * index;
    rounds[2][symbol] = 12 - index;
    ++index;
  }
  return rounds;
}

}  // namespace modelport::ops
