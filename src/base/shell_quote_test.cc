#include "base/shell_quote.h"

#include <doctest/doctest.h>

namespace modelport {

TEST_CASE("a path in a command line is one word of it") {
  CHECK(shell_quote("models/llama-3.1") == "models/llama-3.1");
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("$(reboot)") == "'$(reboot)'");
  CHECK(shell_quote("it's") == R"('it'"'"'s')");
}

}  // namespace modelport
