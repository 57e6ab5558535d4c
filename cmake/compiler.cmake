# Flags of our own targets, carried by one interface target so that nothing leaks into third-party code.
find_program(MODELPORT_CCACHE ccache)
if(MODELPORT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${MODELPORT_CCACHE}")
endif()

# Graphs are walked once or twice: -O3 would gain a tenth of the time to write a file, and take half as long again to
# build. The room that loops over weights asks for more.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")

add_library(modelport_flags INTERFACE)
target_compile_options(modelport_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # From 128 MiB on g++ looks for memory to give back again and again, a tenth of the time of a batch. A gigabyte later is
  # soon enough: a batch takes 2 GiB at most.
  target_compile_options(modelport_flags INTERFACE "SHELL:--param ggc-min-heapsize=1000000")
endif()
if(MODELPORT_WERROR)
  target_compile_options(modelport_flags INTERFACE -Werror)
endif()

if(MODELPORT_SANITIZE)
  # The checks for null make g++ refuse `function != nullptr` in constant expressions, which the operator table needs;
  # AddressSanitizer reports what they would.
  set(sanitizers -fsanitize=address,undefined -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute
                 -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # A check of alignment or of a class at each access makes a build take a third longer: fuzzing has them.
  if(NOT MODELPORT_LIBFUZZER)
    list(APPEND sanitizers -fno-sanitize=alignment,vptr)
  endif()
  target_compile_options(modelport_flags INTERFACE ${sanitizers})
  target_link_options(modelport_flags INTERFACE ${sanitizers})
endif()

if(MODELPORT_LIBFUZZER)
  # The rooms are instrumented for coverage; only the fuzz targets get libFuzzer's main.
  target_compile_options(modelport_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(modelport_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(MODELPORT_TIDY)
  find_program(MODELPORT_CLANG_TIDY NAMES clang-tidy clang-tidy-19 clang-tidy-18 clang-tidy-17 clang-tidy-16 REQUIRED)
endif()
