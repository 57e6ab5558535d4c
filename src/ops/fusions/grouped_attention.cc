// Models with fewer key heads than query heads repeat keys and values before they attend. Attention
// operators do that themselves, without the copy.
#include "ops/fusions/fusion.h"
#include "ops/fusions/repeated_heads.h"

namespace modelport::ops::fusions {

std::string repeated_heads(std::string_view what) {
  const std::string name(what);
  const std::string grown =
      "self=" + name + "_grown@aten.expand(size=_, self=~aten.unsqueeze(self=" + name + ", dim=2))";
  return "{" + name + "_joined@aten.reshape(shape=_, " + grown + ") | " + name +
         "_joined@aten.view(size=_, " + grown + ")}";
}

std::string maybe_repeated(std::string_view what) {
  return "{" + repeated_heads(what) + " | " + std::string(what) + "}";
}

std::optional<shape::Int> times_repeated(const Found& found, const std::string& what) {
  if (!found.is_value(what)) return std::nullopt;
  const auto& from = found.type(what).shape;
  const auto& between = found.type(what + "_grown").shape;
  if (from.size() != 4) return std::nullopt;
  const std::vector<shape::Int> wanted{from[0], from[1], between[2], from[2], from[3]};
  const std::vector<shape::Int> joined{from[0], from[1] * between[2], from[2], from[3]};
  if (between != wanted || found.type(what + "_joined").shape != joined) return std::nullopt;
  return between[2];
}

namespace {

bool both_repeated(const Found& found) {
  const auto keys = times_repeated(found, "keys");
  const auto values = times_repeated(found, "values");
  return keys && values && *keys == *values;
}

std::vector<ir::NamedArg> grouped_args(const Found& found, const ir::Node& attention) {
  std::vector<ir::NamedArg> args;
  for (const ir::NamedArg& named : attention.args) {
    if (named.name == "enable_gqa") continue;
    const ir::Arg& arg = named.name == "key"     ? found.arg("keys")
                         : named.name == "value" ? found.arg("values")
                                                 : named.arg;
    args.push_back({named.name, arg});
  }
  args.push_back({"enable_gqa", {true}});
  return args;
}

}  // namespace

std::span<const Fusion> grouped_attention() {
  static const std::vector<Fusion> rows{
      {.name = "attention on repeated heads",
       .pattern = "aten.scaled_dot_product_attention(key=" + repeated_heads("keys") +
                  ", value=" + repeated_heads("values") + ", enable_gqa=False, ...)",
       .guard = both_repeated,
       .op = "aten.scaled_dot_product_attention",
       .args = grouped_args},
  };
  return rows;
}

}  // namespace modelport::ops::fusions
