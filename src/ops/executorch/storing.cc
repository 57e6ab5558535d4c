#include "ops/executorch/storing.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace modelport::ops::executorch {
namespace {

struct Form {
  std::string_view name;
  StoredAs stored;
};

// XNNPACK's products of 4-bit weights take scales for groups only with rounded inputs.
constexpr std::array kLinearForms{
    Form{"8da4w", {.layout = "xnnpack_qbint4", .bits = 4, .group = 32, .rounds_inputs = true}},
    Form{"8da8w", {.layout = "xnnpack_qcint8", .bits = 8, .group = 0, .rounds_inputs = true}},
    Form{"4w", {.layout = "xnnpack_qcint4", .bits = 4}},
    Form{"8w", {.layout = "xnnpack_qcint8", .bits = 8}},
};
constexpr std::array kEmbeddingForms{
    Form{"4w", {.layout = "executorch_embedding_4bit", .bits = 4, .group = 32}},
    Form{"8w", {.layout = "executorch_embedding_byte", .bits = 8}},
};

template <class Forms>
StoredAs find(const Forms& forms, std::string_view what, std::string_view name,
              std::optional<std::int64_t> group) {
  std::string names;
  for (const Form& form : forms) {
    if (form.name == name) {
      StoredAs stored = form.stored;
      if (group) stored.group = *group;
      return stored;
    }
    names += (names.empty() ? "" : ", ") + std::string(form.name);
  }
  throw ExportError({.code = Code::bad_input,
                     .what = fmt::format("'{}' is no way to store the weights of {}", name, what),
                     .ways_out = {fmt::format("one of: {}", names)}});
}

}  // namespace

StoredAs linear_stored(std::string_view form, std::optional<std::int64_t> group) {
  return find(kLinearForms, "linear layers", form, group);
}

void store_linear(Storing& storing, std::string_view forms, std::optional<std::int64_t> group) {
  const std::size_t comma = forms.find(',');
  storing.linear = linear_stored(forms.substr(0, comma), group);
  if (comma != std::string_view::npos)
    storing.linear_else = linear_stored(forms.substr(comma + 1), 0);
}

StoredAs embedding_stored(std::string_view form, std::optional<std::int64_t> group) {
  return find(kEmbeddingForms, "embeddings", form, group);
}

}  // namespace modelport::ops::executorch
