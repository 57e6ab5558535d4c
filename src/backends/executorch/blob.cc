#include "backends/executorch/blob.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "weights/quantize/quantize.h"

namespace modelport::executorch {

Blob blob_of(std::string text) {
  const std::uint64_t bytes = text.size();
  return {bytes, [text = std::move(text)](weights::Sink& sink) { sink.write(text); }};
}

namespace {

/// The elements of `from` in the order in which the moved axes count them.
std::vector<std::byte> moved(std::span<const std::byte> from, std::size_t width,
                             const std::vector<std::int64_t>& shape,
                             const std::vector<std::size_t>& order) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * static_cast<std::size_t>(shape[i]);
  std::vector<std::byte> to(from.size());
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::size_t position = 0; position < to.size(); position += width) {
    std::size_t source = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      source += static_cast<std::size_t>(at[i]) * strides[order[i]];
    std::memcpy(to.data() + position, from.data() + source * width, width);
    for (std::size_t i = order.size(); i-- > 0 && ++at[i] == shape[order[i]];) at[i] = 0;
  }
  return to;
}

}  // namespace

Blob with_axes(Blob blob, Dtype dtype, const std::vector<std::int64_t>& shape,
               const std::vector<std::size_t>& order) {
  const std::uint64_t bytes = blob.bytes;
  return {bytes, [=, inner = std::move(blob)](weights::Sink& sink) {
            weights::MemorySink whole;
            inner.write(whole);
            sink.write(moved(whole.bytes(), byte_size(dtype), shape, order));
          }};
}

namespace {

std::vector<float> numbers_of(const Blob& blob) {
  std::vector<float> numbers(blob.bytes / sizeof(float));
  if (numbers.empty()) return numbers;
  weights::MemorySink sink;
  blob.write(sink);
  std::memcpy(numbers.data(), sink.bytes().data(), blob.bytes);
  return numbers;
}

std::vector<float> factors_of(const NormFold& fold) {
  std::vector<float> factors = numbers_of(fold.variance);
  const std::vector<float> scale = numbers_of(fold.scale);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double root = std::sqrt(static_cast<double>(factors[i]) + fold.eps);
    factors[i] = static_cast<float>((scale.empty() ? 1.0 : static_cast<double>(scale[i])) / root);
  }
  return factors;
}

}  // namespace

std::pair<Blob, Blob> folded_blobs(const NormFold& fold) {
  Blob filter{fold.filter.bytes, [fold](weights::Sink& sink) {
                const std::vector<float> factors = factors_of(fold);
                std::vector<float> numbers = numbers_of(fold.filter);
                const std::size_t length = numbers.size() / factors.size();
                for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= factors[i / length];
                sink.write(std::as_bytes(std::span(numbers)));
              }};
  Blob bias{fold.variance.bytes, [fold](weights::Sink& sink) {
              const std::vector<float> factors = factors_of(fold);
              const std::vector<float> mean = numbers_of(fold.mean);
              const std::vector<float> before = numbers_of(fold.bias);
              std::vector<float> numbers = numbers_of(fold.shift);
              numbers.resize(factors.size(), 0);
              for (std::size_t i = 0; i < numbers.size(); ++i)
                numbers[i] += ((before.empty() ? 0 : before[i]) - mean[i]) * factors[i];
              sink.write(std::as_bytes(std::span(numbers)));
            }};
  return {std::move(filter), std::move(bias)};
}

std::pair<Blob, Blob> quantized_blobs(const weights::Weight& weight, const weights::Scheme& scheme,
                                      const weights::QuantizedForm& form) {
  constexpr weights::QuantizeOptions kUnmeasured{.measures_error = false};
  const auto kept = std::make_shared<std::vector<std::byte>>();
  Blob codes{form.codes.byte_count(), [=, from = &weight](weights::Sink& sink) {
               weights::MemorySink scales;
               weights::quantize(*from, scheme, {.codes = &sink, .scales = &scales}, kUnmeasured);
               *kept = scales.take();
             }};
  Blob scales{form.scales.byte_count(), [=, from = &weight](weights::Sink& sink) {
                if (kept->empty()) {
                  weights::quantize(*from, scheme, {.scales = &sink}, kUnmeasured);
                  return;
                }
                sink.write(*kept);
                *kept = {};
              }};
  return {std::move(codes), std::move(scales)};
}

}  // namespace modelport::executorch
