#include "weights/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "weights/convert.h"
#include "weights/quantize/found_fits.h"
#include "weights/quantize/in_order.h"
#include "weights/quantize/pack.h"
#include "weights/quantize/row_fitter.h"

namespace modelport::weights {
namespace {

/// What the quantization of one weight has in common for all of its rows.
struct Job {
  const Weight& weight;
  const Scheme& scheme;
  const QuantizedForm& form;
  std::span<const std::byte> bytes;
  std::span<const float> energies;  // the largest is 1; or none
  const InputFacts* inputs = nullptr;
  std::size_t rows_per_piece = 1;
  bool measures_error = true;
  const FoundFits* found = nullptr;

  std::size_t columns() const { return static_cast<std::size_t>(form.columns); }
  std::size_t rows() const { return static_cast<std::size_t>(form.rows); }
  std::size_t row_bytes() const { return columns() * byte_size(weight.dtype); }
  std::size_t pieces() const { return (rows() + rows_per_piece - 1) / rows_per_piece; }
  std::span<const std::byte> piece(std::size_t index) const { return pieces_from(index, 1); }
  std::span<const std::byte> pieces_from(std::size_t index, std::size_t count) const {
    const std::size_t begin = index * rows_per_piece * row_bytes();
    const std::size_t length = count * rows_per_piece * row_bytes();
    return bytes.subspan(begin, std::min(length, bytes.size() - begin));
  }
};

[[noreturn]] void fail(std::string what, std::vector<std::string> ways_out) {
  Diagnostic d;
  d.code = Code::bad_input;
  d.what = std::move(what);
  d.ways_out = std::move(ways_out);
  throw ExportError(std::move(d));
}

[[noreturn]] void fail_in_rows(const Weight& weight, std::size_t first_row,
                               std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / byte_size(weight.dtype));
  convert(weight.dtype, bytes, Dtype::f32, std::as_writable_bytes(std::span(values)));
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) throw InternalError("a row is finite to one reader of it only");
  const std::int64_t index = bad - values.begin();
  const std::int64_t columns = weight.shape.back();
  fail(fmt::format("{} [{}] cannot be quantized: row {}, column {} is {}", weight.name,
                   fmt::join(weight.shape, ", "),
                   static_cast<std::int64_t>(first_row) + index / columns, index % columns, *bad),
       {fmt::format("leave {} as it is, or repair the checkpoint", weight.name)});
}

/// The rows of one piece, quantized.
class Piece {
 public:
  explicit Piece(const Job& job)
      : job_(job),
        packing_(*packing(job.scheme)),
        rows_(job.scheme, job.weight.dtype, job.columns(),
              static_cast<std::size_t>(job.form.group)),
        row_codes_(facts(job.scheme.layout).blocks_apart
                       ? static_cast<std::size_t>(job.form.groups_per_row * job.form.group)
                       : job.columns()),
        row_zero_points_(rows_.groups_per_row()) {}

  void make(std::size_t index) {
    codes_.clear();
    scales_.clear();
    zero_points_.clear();
    sums_.clear();
    std::span<const std::byte> left = job_.piece(index);
    std::size_t row = index * job_.rows_per_piece;
    // What is known of inputs is much to read, so that rows share it.
    const std::size_t at_once = job_.inputs != nullptr ? job_.rows_per_piece : rows_.rows_at_once();
    while (!left.empty()) {
      const auto bytes = left.first(std::min(left.size(), at_once * job_.row_bytes()));
      quantize_rows(row, bytes);
      row += at_once;
      left = left.subspan(bytes.size());
    }
  }

  void write(const QuantizedSinks& sinks) const {
    if (sinks.codes != nullptr) sinks.codes->write(codes_);
    if (sinks.zero_points != nullptr) sinks.zero_points->write(zero_points_);
    if (sinks.scales != nullptr) {
      convert_to(*sinks.scales, Dtype::f32, std::as_bytes(std::span(scales_)),
                 job_.form.scales.dtype);
    }
  }

  /// One a row, so that they add up to the same in pieces of any size.
  const std::vector<SquareSums>& sums() const { return sums_; }

 private:
  void quantize_rows(std::size_t first_row, std::span<const std::byte> bytes) {
    if (!rows_.read(bytes)) fail_in_rows(job_.weight, first_row, bytes);
    const std::span<Fit> fits = rows_.fits();
    const std::size_t groups = rows_.groups_per_row();
    if (job_.found == nullptr || !job_.found->take(first_row * groups, fits))
      rows_.fit(job_.energies);
    windows_.clear();
    for (const Fit& fit : fits) windows_.push_back(rows_.window(fit));
    if (job_.inputs != nullptr) {
      fed_back_.resize(rows_.weights().size());
      feedback_.round(*job_.inputs, rows_.weights(), group(), windows_, fed_back_);
    }
    for (std::size_t row = 0; row * groups < fits.size(); ++row)
      write_row(row, fits.subspan(row * groups, groups));
  }

  std::size_t group() const { return static_cast<std::size_t>(job_.form.group); }

  void write_row(std::size_t row, std::span<const Fit> fits) {
    for (std::size_t g = 0; g < fits.size(); ++g) {
      row_zero_points_[g] = static_cast<std::uint8_t>(fits[g].zero_point);
      scales_.push_back(fits[g].scale);
    }
    make_codes(row, std::span(windows_).subspan(row * fits.size(), fits.size()));
    // What fills up the last group is zero to the kernel.
    std::fill(row_codes_.begin() + static_cast<std::ptrdiff_t>(job_.columns()), row_codes_.end(),
              row_zero_points_.back());
    append_packed(row_codes_, codes_);
    if (job_.form.zero_points) append_packed(row_zero_points_, zero_points_);
  }

  void make_codes(std::size_t row, std::span<const Window> windows) {
    const std::size_t begin = row * job_.columns();
    const auto weights = rows_.weights().subspan(begin, job_.columns());
    if (job_.inputs != nullptr) {
      const auto codes = std::span(fed_back_).subspan(begin, job_.columns());
      std::ranges::copy(codes, row_codes_.begin());
      if (job_.measures_error)
        sums_.push_back(measure_codes(weights, job_.energies, group(), windows, codes));
    } else if (job_.measures_error) {
      sums_.push_back(encode(weights, job_.energies, group(), windows, row_codes_));
    } else {
      encode_only(weights, group(), windows, row_codes_);
    }
  }

  void append_packed(std::span<const std::uint8_t> codes, std::vector<std::byte>& to) const {
    const std::size_t begin = to.size();
    to.resize(begin + (in_nibbles(packing_) ? (codes.size() + 1) / 2 : codes.size()));
    pack(codes, job_.scheme.bits, packing_, std::span(to).subspan(begin));
  }

  const Job& job_;
  Packing packing_;
  RowFitter rows_;
  ErrorFeedback feedback_;
  std::vector<Window> windows_;
  std::vector<std::uint8_t> fed_back_;  // codes of all rows that are read at once
  std::vector<std::uint8_t> row_codes_;
  std::vector<std::uint8_t> row_zero_points_;
  std::vector<std::byte> codes_;
  std::vector<float> scales_;
  std::vector<std::byte> zero_points_;
  std::vector<SquareSums> sums_;
};

/// The energies with the largest at 1, so that their products with weights stay in range.
std::vector<float> normalized(std::span<const float> energies, const Weight& weight) {
  if (energies.empty()) return {};
  const auto bad = [](float energy) { return !std::isfinite(energy) || energy < 0; };
  if (energies.size() != static_cast<std::size_t>(weight.shape.back()) ||
      std::ranges::any_of(energies, bad)) {
    fail(fmt::format("the input energies of {} [{}] are not one number of zero or more a column",
                     weight.name, fmt::join(weight.shape, ", ")),
         {"calibrate again", "quantize without input energies"});
  }
  const float largest = std::ranges::max(energies);
  std::vector<float> result(energies.begin(), energies.end());
  if (largest == 0) return result;
  for (float& energy : result) energy /= largest;
  return result;
}

/// After every eighth piece, and the last: processors are told of each time, and of many pages at
/// once as quickly as of few.
void forget_some(const Job& job, std::size_t piece) {
  constexpr std::size_t kAtOnce = 8;
  if (!job.weight.file || ((piece + 1) % kAtOnce != 0 && piece + 1 != job.pieces())) return;
  job.weight.file->forget(job.pieces_from(piece / kAtOnce * kAtOnce, kAtOnce));
}

double relative(double error, double total) { return total > 0 ? std::sqrt(error / total) : 0; }

}  // namespace

QuantizationReport quantize(const Weight& weight, const Scheme& scheme, const QuantizedSinks& sinks,
                            const QuantizeOptions& options) {
  const QuantizedForm form = quantized_form(weight, scheme);
  const bool feeds_back = options.inputs != nullptr;
  const std::vector<float> energies =
      normalized(feeds_back ? options.inputs->energies : options.input_energies, weight);
  const Contents held = weight.contents();
  Job job{weight, scheme, form, held.bytes, energies, options.inputs};
  job.rows_per_piece = std::max<std::size_t>(1, options.piece_bytes / job.row_bytes());
  job.measures_error = options.measures_error;
  if (weight.fits != nullptr && energies.empty() && weight.fits->are_those_of(scheme, form.columns))
    job.found = weight.fits.get();

  std::vector<Piece> workers(worker_count(job.pieces(), options.threads), Piece(job));
  SquareSums sums;
  run_in_order({.pieces = job.pieces(),
                .threads = workers.size(),
                .make = [&](std::size_t piece, std::size_t worker) { workers[worker].make(piece); },
                .take =
                    [&](std::size_t piece, std::size_t worker) {
                      workers[worker].write(sinks);
                      for (const SquareSums& row : workers[worker].sums()) sums += row;
                      forget_some(job, piece);
                    }});
  QuantizationReport report{relative(sums.error, sums.total)};
  if (!energies.empty()) report.output_error = relative(sums.weighted_error, sums.weighted_total);
  return report;
}

}  // namespace modelport::weights
