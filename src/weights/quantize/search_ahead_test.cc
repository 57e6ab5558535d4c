#include "weights/quantize/search_ahead.h"

#include <doctest/doctest.h>

#include <limits>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "weights/quantize/quantized_values.h"
#include "weights/safetensors_writer.h"

namespace modelport::weights {
namespace {

constexpr Scheme kScheme{.layout = QuantizedLayout::onnx_matmul_nbits, .bits = 4, .group = 32};

struct Stored {
  std::string name;
  Shape shape;
  std::vector<float> values;
  Dtype dtype = Dtype::f32;
};

Stored matrix(std::string name, std::int64_t rows, std::int64_t columns, unsigned seed = 1) {
  return {std::move(name),
          {rows, columns},
          normal_values(static_cast<std::size_t>(rows * columns), seed)};
}

Checkpoint checkpoint_of(const ScratchFolder& folder, const std::vector<Stored>& tensors) {
  std::vector<TensorSource> sources;
  for (const Stored& stored : tensors)
    sources.push_back({stored.name, stored.dtype, stored.shape, [&stored](Sink& sink) {
                         convert_to(sink, Dtype::f32, std::as_bytes(std::span(stored.values)),
                                    stored.dtype);
                       }});
  save_safetensors(sources, folder.path);
  return Checkpoint::open(folder.path);
}

std::vector<SearchAhead::Found> all_of(SearchAhead& ahead) {
  ahead.finish();
  return ahead.found();
}

Weight weight_in(const CheckpointTensor& tensor) {
  return {.name = tensor.entry.name,
          .dtype = tensor.entry.dtype,
          .shape = tensor.entry.shape,
          .bytes = tensor.data()};
}

/// Scales that a search would never find, so that it shows who used them.
struct Marked {
  std::vector<float> scales;
  FoundFits fits;
  Marked(std::size_t groups, std::int64_t columns)
      : scales(groups, 0.125F), fits{kScheme, columns, scales, {}} {}
};

TEST_CASE("scales that were found ahead give the bytes that a search would give") {
  const ScratchFolder folder;
  for (const bool zero_points : {false, true}) {
    for (const Dtype scales : {Dtype::f32, Dtype::f16}) {
      Scheme scheme = kScheme;
      scheme.zero_points = zero_points;
      scheme.scales = scales;
      // Rows of whole batches, of a few groups, and with a shorter last group; types of files.
      std::vector<Stored> tensors{matrix("a", 40, 512), matrix("b", 21, 96), matrix("c", 9, 80)};
      tensors[1].dtype = Dtype::bf16;
      SearchAhead ahead(checkpoint_of(folder, tensors), scheme, {.threads = 2});
      const auto found = all_of(ahead);
      REQUIRE(found.size() == 3);
      for (const SearchAhead::Found& one : found) {
        Weight weight = weight_in(*one.tensor);
        const Quantized plain = quantized(weight, scheme);
        weight.fits = std::make_shared<const FoundFits>(one.fits);
        const Quantized known = quantized(weight, scheme);
        CHECK(known.codes == plain.codes);
        CHECK(known.scales == plain.scales);
        CHECK(known.zero_points == plain.zero_points);
      }
    }
  }
}

TEST_CASE("what was found is used, and where it ends the search goes on") {
  const std::vector<float> values = normal_values(std::size_t{4} * 256, 1);
  Weight weight = weight_of(values, {4, 256});
  const Quantized plain = quantized(weight, kScheme);
  const Marked marked(16, 256);  // two rows of four
  weight.fits = std::make_shared<const FoundFits>(marked.fits);
  const Quantized known = quantized(weight, kScheme);
  for (std::size_t group = 0; group < 32; ++group)
    CHECK(known.scales[group] == (group < 16 ? 0.125F : plain.scales[group]));
}

TEST_CASE("what was found for another scheme, other rows or without energies is not used") {
  const std::vector<float> values = normal_values(std::size_t{4} * 256, 1);
  Weight weight = weight_of(values, {4, 256});
  const auto is_used = [&](const FoundFits& fits, const QuantizeOptions& options = {}) {
    weight.fits = std::make_shared<const FoundFits>(fits);
    return quantized(weight, kScheme, options).scales[0] == 0.125F;
  };
  CHECK(is_used(Marked(32, 256).fits));
  CHECK_FALSE(is_used(Marked(32, 128).fits));
  Marked other(32, 256);
  other.fits.scheme.group = 64;
  CHECK_FALSE(is_used(other.fits));
  other.fits.scheme = kScheme;
  other.fits.scheme.choice = ScaleChoice::range;
  CHECK_FALSE(is_used(other.fits));
  other.fits.scheme = kScheme;
  other.fits.scheme.scales = Dtype::f16;
  CHECK_FALSE(is_used(other.fits));
  other.fits.scheme.scales = Dtype::f32;  // the layout's own
  CHECK(is_used(other.fits));
  const std::vector<float> energies(256, 2.0F);
  CHECK_FALSE(is_used(Marked(32, 256).fits, {.input_energies = energies}));
}

TEST_CASE("vectors, integers, narrow matrices and empty ones are left out") {
  const ScratchFolder folder;
  std::vector<Stored> tensors{matrix("wanted", 8, 64),
                              matrix("narrow", 64, 16),
                              matrix("empty", 0, 64),
                              {"vector", {64}, normal_values(64, 1)}};
  SearchAhead ahead(checkpoint_of(folder, tensors), kScheme, {.threads = 1});
  const auto found = all_of(ahead);
  REQUIRE(found.size() == 1);
  CHECK(found[0].tensor->entry.name == "wanted");
  CHECK(found[0].fits.scales.size() == 16);
}

TEST_CASE("no more is found than there is room for") {
  const ScratchFolder folder;
  SearchAhead ahead(checkpoint_of(folder, {matrix("a", 8, 64), matrix("b", 8, 64)}), kScheme,
                    {.most_bytes = 20 * sizeof(float), .threads = 1});
  const auto found = all_of(ahead);
  REQUIRE(found.size() == 2);
  CHECK(found[0].fits.scales.size() == 16);
  CHECK(found[1].fits.scales.size() == 4);  // two rows
}

TEST_CASE("a weight that is not finite is left to the writer, which says where it is") {
  const ScratchFolder folder;
  std::vector<Stored> tensors{matrix("a", 8, 64), matrix("b", 8, 64)};
  tensors[0].values[70] = std::numeric_limits<float>::infinity();
  SearchAhead ahead(checkpoint_of(folder, tensors), kScheme, {.threads = 1});
  const auto found = all_of(ahead);
  REQUIRE(found.size() == 1);
  CHECK(found[0].tensor->entry.name == "b");
}

TEST_CASE("a search that is not waited for ends at once, with the first rows of what it found") {
  const ScratchFolder folder;
  SearchAhead ahead(checkpoint_of(folder, {matrix("a", 20'000, 512)}), kScheme, {.threads = 2});
  const auto found = ahead.found();
  REQUIRE(found.size() <= 1);
  if (!found.empty()) CHECK(found[0].fits.scales.size() % 16 == 0);
  const SearchAhead unused(checkpoint_of(folder, {matrix("a", 20'000, 512)}), kScheme, {});
}

}  // namespace
}  // namespace modelport::weights
