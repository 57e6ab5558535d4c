// For tests: a process that is killed before the n-th change that it makes to the disk.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>

#include "driver/disk.h"

namespace modelport::driver {

/// Runs `work` in a process of its own; whether it came to its end before it was killed.
template <typename Work>
bool survives(int steps, const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int left = steps;
    before_step() = [&left] {
      if (left-- == 0) ::raise(SIGKILL);
    };
    int code = 0;
    try {
      work();
    } catch (const std::exception&) {
      code = 1;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace modelport::driver
