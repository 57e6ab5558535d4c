// How the weights of products and embeddings are stored, where a recipe asks for other types than
// the model's: by the names that torchao and optimum-executorch have for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace modelport::ops::executorch {

struct StoredAs {
  std::string_view layout;  // of weights/quantize
  std::int64_t bits = 8;
  std::int64_t group = 0;      // columns that share a scale; 0: all of them
  bool rounds_inputs = false;  // inputs are rounded to 8 bits when they come
};

/// Nothing where weights stay as they are.
struct Storing {
  std::optional<StoredAs> linear;
  std::optional<StoredAs> linear_else;  // for rows that groups of `linear` do not divide
  std::optional<StoredAs> embedding;

  /// How a product with rows of so many columns is stored.
  const std::optional<StoredAs>& linear_of(std::int64_t columns) const {
    const bool fits = !linear || linear->group == 0 || columns % linear->group == 0;
    return fits || !linear_else ? linear : linear_else;
  }
};

/// "8da4w", "8da8w", "4w", "8w". Throws ExportError for another name.
StoredAs linear_stored(std::string_view form, std::optional<std::int64_t> group);
/// "8da4w,8da8w": the first in groups; where they do not divide a row, the second with one scale a
/// row.
void store_linear(Storing& storing, std::string_view forms, std::optional<std::int64_t> group);
/// "4w", "8w".
StoredAs embedding_stored(std::string_view form, std::optional<std::int64_t> group);

}  // namespace modelport::ops::executorch
