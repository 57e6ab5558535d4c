#include "weights/quantize/search_ahead.h"

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "weights/convert.h"

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace modelport::weights {
namespace {

/// Whoever runs the model has work that somebody waits for.
void run_when_nobody_else_does() {
#ifdef __linux__
  setpriority(PRIO_PROCESS, 0, 10);  // of this thread: Linux has a priority for each
#endif
}

std::size_t spare_processors() {
  const std::size_t all = std::thread::hardware_concurrency();
  return all > 1 ? all - 1 : 0;
}

}  // namespace

struct SearchAhead::Matrix {
  const CheckpointTensor& tensor;
  std::size_t groups_per_row = 0;
  // Not set to zero: memory that nothing is found for is never touched.
  std::unique_ptr<float[]> scales;
  std::unique_ptr<std::uint8_t[]> zero_points;

  void keep(std::size_t first_row, std::span<const Fit> fits) const {
    const std::size_t first = first_row * groups_per_row;
    for (std::size_t i = 0; i < fits.size(); ++i) {
      scales[first + i] = fits[i].scale;
      if (zero_points) zero_points[first + i] = static_cast<std::uint8_t>(fits[i].zero_point);
    }
  }
};

SearchAhead::SearchAhead(Checkpoint checkpoint, const Scheme& scheme, const Options& options)
    : checkpoint_(std::move(checkpoint)), scheme_(scheme) {
  std::uint64_t bytes_left = options.most_bytes;
  for (const CheckpointTensor& tensor : checkpoint_.tensors()) add(tensor, bytes_left);
  const std::size_t wanted = options.threads == 0 ? spare_processors() : options.threads;
  while (threads_.size() < std::min(wanted, shares_.size()) && add_thread()) {
  }
}

/// False where the system has no more of them: then less is found.
bool SearchAhead::add_thread() {
  try {
    threads_.emplace_back([this] { run_worker(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

SearchAhead::~SearchAhead() { stop(); }

RowFitter SearchAhead::fitter_of(const CheckpointTensor& tensor) const {
  return {scheme_, tensor.entry.dtype, static_cast<std::size_t>(tensor.entry.shape[1]),
          static_cast<std::size_t>(scheme_.group)};
}

void SearchAhead::add(const CheckpointTensor& tensor, std::uint64_t& bytes_left) {
  constexpr std::size_t kShare = std::size_t{4} << 20;  // bytes: some milliseconds
  const Shape& shape = tensor.entry.shape;
  if (shape.size() != 2 || !can_convert(tensor.entry.dtype) || shape[1] < scheme_.group) return;
  const RowFitter fitter = fitter_of(tensor);
  auto matrix = std::make_unique<Matrix>(Matrix{tensor, fitter.groups_per_row()});
  const std::size_t group_bytes = sizeof(float) + (scheme_.zero_points ? 1 : 0);
  const auto rows = std::min<std::size_t>(static_cast<std::size_t>(shape[0]),
                                          bytes_left / (matrix->groups_per_row * group_bytes));
  if (rows == 0) return;
  const std::size_t groups = rows * matrix->groups_per_row;
  bytes_left -= groups * group_bytes;
  matrix->scales = std::make_unique_for_overwrite<float[]>(groups);
  if (scheme_.zero_points)
    matrix->zero_points = std::make_unique_for_overwrite<std::uint8_t[]>(groups);
  const std::size_t rows_at_once =
      (std::max<std::size_t>(kShare / fitter.row_bytes(), 1) + kBatch - 1) / kBatch * kBatch;
  for (std::size_t row = 0; row < rows; row += rows_at_once)
    shares_.push_back({matrix.get(), row, std::min(rows_at_once, rows - row)});
  matrices_.push_back(std::move(matrix));
}

/// False where a weight is not finite.
bool SearchAhead::search(const Share& share) const {
  const CheckpointTensor& tensor = share.matrix->tensor;
  RowFitter fitter = fitter_of(tensor);
  const auto bytes =
      tensor.data().subspan(share.first_row * fitter.row_bytes(), share.rows * fitter.row_bytes());
  for (std::size_t row = 0; row < share.rows; row += fitter.rows_at_once()) {
    const std::size_t rows = std::min(fitter.rows_at_once(), share.rows - row);
    if (!fitter.read(bytes.subspan(row * fitter.row_bytes(), rows * fitter.row_bytes())))
      return false;
    fitter.fit({});
    share.matrix->keep(share.first_row + row, fitter.fits());
  }
  tensor.file->forget(bytes);
  return true;
}

void SearchAhead::run_worker() {
  run_when_nobody_else_does();
  while (!is_over_) {
    const std::size_t next = begun_++;
    if (next >= shares_.size()) return;
    shares_[next].is_done = search(shares_[next]);
  }
}

void SearchAhead::finish() { threads_.clear(); }

void SearchAhead::stop() {
  is_over_ = true;
  finish();
}

std::vector<SearchAhead::Found> SearchAhead::found() {
  stop();
  std::vector<Found> found;
  const Matrix* missing = nullptr;  // what follows a gap is of no use
  for (const Share& share : shares_) {
    const Matrix& matrix = *share.matrix;
    if (!share.is_done) missing = &matrix;
    if (missing == &matrix) continue;
    if (found.empty() || found.back().tensor != &matrix.tensor)
      found.push_back({&matrix.tensor, {scheme_, matrix.tensor.entry.shape[1], {}, {}}});
    const std::size_t groups = (share.first_row + share.rows) * matrix.groups_per_row;
    FoundFits& fits = found.back().fits;
    fits.scales = {matrix.scales.get(), groups};
    if (matrix.zero_points) fits.zero_points = {matrix.zero_points.get(), groups};
  }
  return found;
}

}  // namespace modelport::weights
