// Scales of a checkpoint's matrices, searched by processors that have nothing else to do while a
// model is imported and captured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/quantize/found_fits.h"
#include "weights/quantize/row_fitter.h"

namespace modelport::weights {

class SearchAhead {
 public:
  struct Options {
    std::uint64_t most_bytes = std::uint64_t{64} << 20;  // of what is found
    std::size_t threads = 0;                             // 0: all but one that the machine has
  };

  /// A matrix of the checkpoint, and what was found of it.
  struct Found {
    const CheckpointTensor* tensor = nullptr;
    FoundFits fits;
  };

  /// Starts with the first matrix of the checkpoint; those that the scheme cannot be used for are
  /// left out, and so is what a reader of the whole weight will refuse.
  SearchAhead(Checkpoint checkpoint, const Scheme& scheme, const Options& options);
  SearchAhead(const SearchAhead&) = delete;
  SearchAhead& operator=(const SearchAhead&) = delete;
  ~SearchAhead();

  /// Waits until all is found that was to be.
  void finish();
  /// What was found by now; ends the search.
  std::vector<Found> found();

 private:
  struct Matrix;
  /// Rows that a thread takes at once.
  struct Share {
    Matrix* matrix = nullptr;
    std::size_t first_row = 0;
    std::size_t rows = 0;
    bool is_done = false;
  };

  void add(const CheckpointTensor& tensor, std::uint64_t& bytes_left);
  bool add_thread();
  void run_worker();
  bool search(const Share& share) const;
  RowFitter fitter_of(const CheckpointTensor& tensor) const;
  void stop();

  Checkpoint checkpoint_;
  Scheme scheme_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
  std::vector<Share> shares_;
  std::atomic<std::size_t> begun_ = 0;
  std::atomic<bool> is_over_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace modelport::weights
