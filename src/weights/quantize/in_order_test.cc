#include "weights/quantize/in_order.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace modelport::weights {
namespace {

TEST_CASE("pieces are taken in their order, whichever is made first") {
  std::vector<std::size_t> taken;
  std::atomic<std::size_t> made = 0;
  run_in_order({.pieces = 50,
                .threads = 4,
                .make =
                    [&](std::size_t piece, std::size_t worker) {
                      CHECK(worker < 4);
                      // Every third piece is slow.
                      std::this_thread::sleep_for(
                          std::chrono::microseconds(piece % 3 == 0 ? 500 : 0));
                      ++made;
                    },
                .take = [&](std::size_t piece, std::size_t) { taken.push_back(piece); }});
  CHECK(made == 50);
  REQUIRE(taken.size() == 50);
  for (std::size_t i = 0; i < taken.size(); ++i) CHECK(taken[i] == i);
}

TEST_CASE("of several errors the first piece's is thrown, after all pieces before it were taken") {
  for (const std::size_t threads : {1, 2, 7}) {
    std::size_t taken = 0;
    const OrderedWork work{.pieces = 30,
                           .threads = threads,
                           .make =
                               [&](std::size_t piece, std::size_t) {
                                 if (piece == 11) {
                                   std::this_thread::sleep_for(std::chrono::milliseconds(2));
                                 }
                                 if (piece >= 11) throw std::runtime_error(std::to_string(piece));
                               },
                           .take = [&](std::size_t, std::size_t) { ++taken; }};
    CHECK_THROWS_WITH(run_in_order(work), "11");
    CHECK(taken == 11);
  }
}

TEST_CASE("there are no more workers than pieces, and one at least") {
  CHECK(worker_count(3, 8) == 3);
  CHECK(worker_count(0, 8) == 1);
  CHECK(worker_count(100, 2) == 2);
  CHECK(worker_count(100, 0) >= 1);
  run_in_order({.pieces = 0, .threads = 3});
}

}  // namespace
}  // namespace modelport::weights
