#include "weights/quantize/fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "weights/quantize/quantized_values.h"

namespace modelport::weights {
namespace {

struct Case {
  Scheme scheme;
  std::size_t group;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const QuantizedLayout layout :
       {QuantizedLayout::torchao_int8, QuantizedLayout::xnnpack_qbint4,
        QuantizedLayout::onnx_matmul_nbits}) {
    for (const int bits : {4, 8}) {
      for (const bool zero_points : {false, true}) {
        for (const std::size_t group : {32, 128, 1024}) {
          const bool one_form = layout == QuantizedLayout::xnnpack_qbint4;
          if (one_form && (bits == 8 || zero_points)) continue;
          all.push_back({{.layout = layout, .bits = bits, .zero_points = zero_points}, group});
        }
      }
    }
  }
  return all;
}

Fit fit_of(GroupFitter& fitter, std::span<const float> weights,
           std::span<const float> energies = {}) {
  Fit fit;
  fitter.fit({weights, weights.size(), weights.size(), energies}, {&fit, 1});
  return fit;
}

Fit fit_of(const Scheme& scheme, std::span<const float> weights,
           std::span<const float> energies = {}) {
  GroupFitter fitter(scheme);
  return fit_of(fitter, weights, energies);
}

/// Normal, heavy-tailed, all positive, few values, one outlier, tiny and huge.
std::vector<std::vector<float>> groups_of(std::size_t count) {
  std::mt19937 random(3);
  std::student_t_distribution<float> heavy(2);
  std::vector<std::vector<float>> groups;
  for (unsigned seed = 0; seed < 6; ++seed) groups.push_back(normal_values(count, seed));
  for (int i = 0; i < 6; ++i) {
    groups.emplace_back(count);
    for (float& value : groups.back()) value = heavy(random);
  }
  groups.push_back(normal_values(count, 7));
  for (float& value : groups.back()) value = std::abs(value) + 0.1F;
  groups.push_back(normal_values(count, 8));
  for (float& value : groups.back()) value = value > 0 ? 0.3F : -0.3F;
  groups.push_back(normal_values(count, 9));
  groups.back()[5] = 10;
  for (const float factor : {1e-38F, 1e-30F, 1e-20F, 1e20F, 4e36F}) {
    groups.push_back(normal_values(count, 10));
    for (float& value : groups.back()) value *= factor * 50;
  }
  return groups;
}

/// In units of the largest weight, so that squares neither overflow nor vanish.
double squared_error(const std::vector<float>& weights, const std::vector<float>& energies,
                     const Fit& fit, int levels) {
  double largest = 0;
  for (const float weight : weights) largest = std::max(largest, std::abs(double{weight}));
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double scale = fit.scale;
    const double code = std::clamp(std::nearbyint(double{weights[i]} / scale) + fit.zero_point, 0.0,
                                   double(levels - 1));
    const double off = (double{weights[i]} - scale * (code - fit.zero_point)) / largest;
    sum += off * off * (energies.empty() ? 1.0 : double{energies[i]});
  }
  return sum;
}

TEST_CASE("the search is never worse than the range") {
  for (Case one : cases()) {
    std::vector<float> energies(one.group);
    for (std::size_t i = 0; i < one.group; ++i) energies[i] = static_cast<float>(i % 5) / 4;
    for (const std::vector<float>& weights : groups_of(one.group)) {
      for (const auto& used : {std::vector<float>(), energies}) {
        one.scheme.choice = ScaleChoice::search;
        const Fit better = fit_of(one.scheme, weights, used);
        one.scheme.choice = ScaleChoice::range;
        const Fit plain = fit_of(one.scheme, weights, used);
        const int levels = 1 << one.scheme.bits;
        CAPTURE(name(one.scheme.layout));
        CAPTURE(one.scheme.bits);
        CAPTURE(weights[0]);
        CHECK(squared_error(weights, used, better, levels) <=
              squared_error(weights, used, plain, levels) * (1 + 1e-4));
      }
    }
  }
}

/// Where least squares on the codes settle, from a scale that spans the largest weight.
Fit settled(const std::vector<float>& weights, int bits) {
  const int levels = 1 << bits;
  double scale = 0;
  for (const float weight : weights) scale = std::max(scale, std::abs(double{weight}));
  scale /= levels / 2;
  for (int i = 0; i < 20; ++i) {
    double wq = 0;
    double qq = 0;
    for (const float weight : weights) {
      const double q = std::clamp(std::nearbyint(weight / scale), -levels / 2.0, levels / 2.0 - 1);
      wq += weight * q;
      qq += q * q;
    }
    scale = wq / qq;
  }
  return {static_cast<float>(scale), levels / 2};
}

TEST_CASE("over many groups the search is better than least squares from one start") {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::student_t_distribution<float> heavy(3);
  for (const int bits : {4, 8}) {
    for (const std::size_t group : {32, 128, 1024}) {
      for (const bool tails : {false, true}) {
        GroupFitter fitter({.layout = QuantizedLayout::torchao_int8, .bits = bits});
        double ours = 0;
        double theirs = 0;
        for (std::size_t done = 0; done < 16384; done += group) {
          std::vector<float> weights(group);
          for (float& weight : weights) weight = tails ? heavy(random) : normal(random);
          ours += squared_error(weights, {}, fit_of(fitter, weights), 1 << bits);
          theirs += squared_error(weights, {}, settled(weights, bits), 1 << bits);
        }
        CAPTURE(bits);
        CAPTURE(group);
        CHECK(ours < theirs);
      }
    }
  }
}

TEST_CASE("negative scales are for layouts that take them, and lower the error") {
  double with = 0;
  double without = 0;
  int negative = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::vector<float> weights = normal_values(32, seed);
    const Fit onnx = fit_of({.layout = QuantizedLayout::onnx_matmul_nbits}, weights);
    const Fit xnnpack = fit_of({.layout = QuantizedLayout::xnnpack_qbint4}, weights);
    with += squared_error(weights, {}, onnx, 16);
    without += squared_error(weights, {}, xnnpack, 16);
    negative += onnx.scale < 0 ? 1 : 0;
    CHECK(xnnpack.scale > 0);
  }
  CHECK(negative > 20);
  CHECK(with < without * 0.95);
}

TEST_CASE("a group of zeros has a scale of one and codes of zero") {
  const std::vector<float> zeros(32, 0.0F);
  for (Case one : cases()) {
    for (const ScaleChoice choice : {ScaleChoice::range, ScaleChoice::search}) {
      one.scheme.choice = choice;
      GroupFitter fitter(one.scheme);
      const Fit fit = fit_of(fitter, zeros);
      CHECK(fit == Fit{1, 1 << (one.scheme.bits - 1)});
      std::vector<std::uint8_t> codes(32);
      const Window window = fitter.window(fit);
      CHECK(encode(zeros, {}, zeros.size(), {&window, 1}, codes).error == 0);
      CHECK(codes == std::vector<std::uint8_t>(32, 1 << (one.scheme.bits - 1)));
    }
  }
}

TEST_CASE("scales are ones that their type holds: neither zero nor infinite") {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const float largest : {1e-45F, 1e-40F, 1e-9F, 1.0F, 1e6F, 3e38F}) {
      for (const ScaleChoice choice : {ScaleChoice::range, ScaleChoice::search}) {
        GroupFitter fitter(
            {.layout = QuantizedLayout::torchao_int8, .scales = dtype, .choice = choice});
        const std::vector<float> weights{largest, -largest / 2, 0, largest / 3};
        const Fit fit = fit_of(fitter, weights);
        float back = 0;
        std::vector<std::byte> stored(byte_size(dtype));
        convert(Dtype::f32, std::as_bytes(std::span(&fit.scale, 1)), dtype, stored);
        convert(dtype, stored, Dtype::f32, std::as_writable_bytes(std::span(&back, 1)));
        CHECK(back == fit.scale);
        CHECK(std::isfinite(fit.scale));
        CHECK(fit.scale > 0);
      }
    }
  }
}

TEST_CASE("weights that codes meet exactly are met exactly") {
  std::vector<float> weights;
  for (int i = 0; i < 32; ++i) weights.push_back(0.25F * static_cast<float>(i % 16 - 8));
  GroupFitter fitter({.layout = QuantizedLayout::xnnpack_qbint4});
  const Fit fit = fit_of(fitter, weights);
  CHECK(fit.scale == 0.25F);
  CHECK(measure(weights, {}, fitter.window(fit)).error == 0);
  for (float& weight : weights) weight += 1.25F;  // -0.75 to 3
  GroupFitter shifted({.layout = QuantizedLayout::onnx_matmul_nbits, .zero_points = true});
  CHECK(fit_of(shifted, weights) == Fit{0.25F, 3});
}

TEST_CASE("what a group gets does not depend on those beside it, and a short last one is fitted") {
  const std::size_t columns = 7 * 32 + 12;
  std::vector<float> weights = normal_values(3 * columns, 21);
  for (std::size_t i = 32; i < 64; ++i) weights[i] = 0;
  for (std::size_t i = 64; i < 96; ++i) weights[i] *= 1e-36F;
  for (std::size_t i = 96; i < 128; ++i) weights[i] *= 1e30F;
  std::vector<float> energies(columns);
  for (std::size_t i = 128; i < columns; ++i) energies[i] = static_cast<float>(i % 5);
  for (const Case& one : cases()) {
    for (const auto& used : {std::vector<float>(), energies}) {
      GroupFitter fitter(one.scheme);
      std::vector<Fit> fits(3 * 8);
      fitter.fit({weights, columns, 32, used}, fits);
      for (std::size_t g = 0; g < fits.size(); ++g) {
        const std::size_t begin = g % 8 * 32;
        const std::size_t length = std::min<std::size_t>(32, columns - begin);
        const std::span group = std::span(weights).subspan(g / 8 * columns + begin, length);
        const auto counts = used.empty() ? std::span<const float>()
                                         : std::span<const float>(used).subspan(begin, length);
        CAPTURE(g);
        CHECK(fits[g] == fit_of(fitter, group, counts));
      }
    }
  }
}

/// Of the scale with the least error among many; the largest weight has the lowest code.
double dense_error(const std::vector<float>& weights, int levels) {
  double least = std::numeric_limits<double>::infinity();
  const auto [low, high] = std::ranges::minmax(weights);
  const float largest = high > -low ? -high : -low;
  for (float factor = 0.85F; factor < 2.5F; factor += 0.004F) {
    const float scale = largest / (static_cast<float>(levels - 1) / 2 * factor);
    least = std::min(least, squared_error(weights, {}, {scale, levels / 2}, levels));
  }
  return least;
}

TEST_CASE("16 codes: the error is within 1 % of that of a dense search") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::student_t_distribution<float> heavy(3);
  std::uniform_real_distribution<float> even(-1, 1);
  for (const std::size_t group : {32, 128, 1024}) {
    for (const int kind : {0, 1, 2}) {
      GroupFitter fitter({.layout = QuantizedLayout::onnx_matmul_nbits});
      double ours = 0;
      double dense = 0;
      for (std::size_t done = 0; done < 16384; done += group) {
        std::vector<float> weights(group);
        for (float& weight : weights) {
          weight = kind == 0 ? normal(random) : (kind == 1 ? heavy(random) : even(random));
        }
        ours += squared_error(weights, {}, fit_of(fitter, weights), 16);
        dense += dense_error(weights, 16);
      }
      CAPTURE(group);
      CAPTURE(kind);
      CHECK(ours < dense * 1.01);
    }
  }
}

}  // namespace
}  // namespace modelport::weights
