// Work on several threads whose results are taken one after the other.
#pragma once

#include <cstddef>
#include <functional>

namespace modelport::weights {

struct OrderedWork {
  std::size_t pieces = 0;
  std::size_t threads = 0;  // 0: as many as the machine has; never more than pieces
  /// Runs on several threads at once; `worker` is less than the number of threads, and the same
  /// worker does one piece at a time.
  std::function<void(std::size_t piece, std::size_t worker)> make;
  /// Called for piece 0, 1, 2 …, one at a time, on the thread that made it.
  std::function<void(std::size_t piece, std::size_t worker)> take;
};

std::size_t worker_count(std::size_t pieces, std::size_t threads);

/// At most one piece a worker is in the making or waits to be taken. Of several errors the one of
/// the first piece is thrown, and nothing after it is taken.
void run_in_order(const OrderedWork& work);

}  // namespace modelport::weights
