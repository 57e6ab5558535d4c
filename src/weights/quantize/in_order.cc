#include "weights/quantize/in_order.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace modelport::weights {
namespace {

class Turns {
 public:
  explicit Turns(const OrderedWork& work) : work_(work) {}

  void run_worker(std::size_t worker) {
    while (true) {
      const std::size_t piece = next_piece();
      if (piece >= work_.pieces) return;
      std::exception_ptr failed;
      try {
        work_.make(piece, worker);
      } catch (...) {
        failed = std::current_exception();
      }
      if (!take_turn(piece, worker, failed)) return;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::size_t next_piece() {
    const std::scoped_lock lock(mutex_);
    return error_ ? work_.pieces : begun_++;
  }

  /// False when there is nothing more to do.
  bool take_turn(std::size_t piece, std::size_t worker, std::exception_ptr failed) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return error_ != nullptr || taken_ == piece; });
    if (error_) return false;
    lock.unlock();  // nobody else has this turn, and others may begin their pieces meanwhile
    if (!failed) {
      try {
        work_.take(piece, worker);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    lock.lock();
    error_ = failed;
    ++taken_;
    turn_.notify_all();
    return error_ == nullptr;
  }

  const OrderedWork& work_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::size_t begun_ = 0;
  std::size_t taken_ = 0;
  std::exception_ptr error_;
};

}  // namespace

std::size_t worker_count(std::size_t pieces, std::size_t threads) {
  const std::size_t wanted = threads == 0 ? std::thread::hardware_concurrency() : threads;
  return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(pieces, 1));
}

void run_in_order(const OrderedWork& work) {
  Turns turns(work);
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t worker = 1; worker < worker_count(work.pieces, work.threads); ++worker) {
        others.emplace_back([&turns, worker] { turns.run_worker(worker); });
      }
    } catch (const std::system_error&) {  // no more threads: those that are there do the work
    }
    turns.run_worker(0);
  }
  turns.rethrow();
}

}  // namespace modelport::weights
