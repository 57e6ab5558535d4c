# Every third-party library, with the room that uses it. System packages first; torch comes from the Python
# interpreter's own package, so that the extension matches the torch it will be loaded next to.

# fmt: used by base and everything above it. Nothing shipped needs the system's libfmt or meets the copy inside libtorch:
# its library is compiled into ours with hidden symbols, and where a release of fmt wants more than cmake/fmt.cc holds,
# fmt is taken header-only, with which a file compiles three times as long. Builds with sanitizers are never shipped.
find_package(fmt REQUIRED)
add_library(modelport_fmt INTERFACE)
if(MODELPORT_SANITIZE)
  target_link_libraries(modelport_fmt INTERFACE fmt::fmt)
else()
  get_target_property(fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT DEFINED MODELPORT_FMT_COMPILED)  # it takes seconds, and would be tried again whenever a file changes
    try_compile(MODELPORT_FMT_COMPILED "${PROJECT_BINARY_DIR}/fmt_probe"
      SOURCES "${PROJECT_SOURCE_DIR}/cmake/fmt_probe.cc" "${PROJECT_SOURCE_DIR}/cmake/fmt.cc"
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${fmt_include}" CXX_STANDARD 20)
  endif()
  if(MODELPORT_FMT_COMPILED)
    add_library(modelport_fmt_compiled STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt.cc")
    target_include_directories(modelport_fmt_compiled SYSTEM PUBLIC ${fmt_include})
    set_target_properties(modelport_fmt_compiled PROPERTIES CXX_VISIBILITY_PRESET hidden)
    target_link_libraries(modelport_fmt INTERFACE modelport_fmt_compiled)
  else()
    target_link_libraries(modelport_fmt INTERFACE fmt::fmt-header-only)
  endif()
endif()

# nlohmann_json: used by base (json files), weights (safetensors headers), backends/pt2 (the program).
find_package(nlohmann_json 3.9 REQUIRED)

# minizip and zlib: used by backends/pt2 (the archive).
find_package(PkgConfig REQUIRED)
pkg_check_modules(minizip REQUIRED IMPORTED_TARGET minizip)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)

# protozero: used by backends/onnx (protobuf without a second protobuf library in the process). Headers only.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)
add_library(modelport_protozero INTERFACE)
target_include_directories(modelport_protozero SYSTEM INTERFACE "${PROTOZERO_INCLUDE_DIR}")

# flatbuffers and ExecuTorch's schemas: used by backends/executorch. The schemas are those of the executorch package in
# the Python environment; the code for them is generated here and is not in git. Without one of them, the room is left out.
# The compiler has to be of the headers' version, hence the one that lies beside them: executorch brings another.
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h)
find_program(MODELPORT_FLATC flatc PATHS "${FLATBUFFERS_INCLUDE_DIR}/../bin" NO_DEFAULT_PATH)
set(executorch_python "${Python_EXECUTABLE}")
if(NOT executorch_python)
  find_program(MODELPORT_PYTHON NAMES python3 python)
  set(executorch_python "${MODELPORT_PYTHON}")
endif()
# Found without importing it, which would take seconds.
execute_process(
  COMMAND "${executorch_python}" -c
          "import importlib.util as u; s = u.find_spec('executorch'); print(s.submodule_search_locations[0] if s else '')"
  OUTPUT_VARIABLE MODELPORT_EXECUTORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(MODELPORT_WITH_EXECUTORCH OFF)
if(MODELPORT_FLATC AND FLATBUFFERS_INCLUDE_DIR AND EXISTS "${MODELPORT_EXECUTORCH_DIR}/schema/program.fbs"
   AND EXISTS "${MODELPORT_EXECUTORCH_DIR}/backends/xnnpack/serialization/schema.fbs")
  set(MODELPORT_WITH_EXECUTORCH ON)
  message(STATUS "ExecuTorch's schemas in ${MODELPORT_EXECUTORCH_DIR}")
  set(schema_dir "${PROJECT_BINARY_DIR}/schemas/executorch_schema")
  set(schemas
    "${MODELPORT_EXECUTORCH_DIR}/schema/program.fbs"
    "${MODELPORT_EXECUTORCH_DIR}/schema/scalar_type.fbs"
    "${MODELPORT_EXECUTORCH_DIR}/extension/flat_tensor/serialize/flat_tensor.fbs")
  foreach(schema IN LISTS schemas)
    cmake_path(GET schema STEM stem)
    list(APPEND schema_headers "${schema_dir}/${stem}_generated.h")
  endforeach()
  add_custom_command(OUTPUT ${schema_headers}
    COMMAND "${MODELPORT_FLATC}" --cpp -o "${schema_dir}" ${schemas}
    DEPENDS ${schemas} VERBATIM)
  # Of the XNNPACK delegate. Its file has a name that says nothing, hence a folder of its own.
  set(xnnpack_schema "${MODELPORT_EXECUTORCH_DIR}/backends/xnnpack/serialization/schema.fbs")
  set(xnnpack_header "${PROJECT_BINARY_DIR}/schemas/xnnpack_schema/schema_generated.h")
  add_custom_command(OUTPUT "${xnnpack_header}"
    COMMAND "${MODELPORT_FLATC}" --cpp -o "${PROJECT_BINARY_DIR}/schemas/xnnpack_schema" "${xnnpack_schema}"
    DEPENDS "${xnnpack_schema}" VERBATIM)
  add_custom_target(modelport_executorch_schema_headers DEPENDS ${schema_headers} "${xnnpack_header}")
  add_library(modelport_executorch_schema INTERFACE)
  add_dependencies(modelport_executorch_schema modelport_executorch_schema_headers)
  target_include_directories(modelport_executorch_schema SYSTEM INTERFACE
    "${PROJECT_BINARY_DIR}/schemas" "${FLATBUFFERS_INCLUDE_DIR}")
else()
  message(STATUS "Without backends/executorch. It needs flatc and its headers (apt-get install flatbuffers-compiler "
                 "libflatbuffers-dev) and the schemas of: ${executorch_python} -m pip install --no-deps executorch==1.5.1")
endif()

# doctest: used by the tests of every room.
if(BUILD_TESTING)
  find_package(doctest REQUIRED)
endif()

# Threads: used by the tests of capture (two captures in two threads).
find_package(Threads REQUIRED)

# libtorch: used by capture and the binding, and by nothing else. Taken by path from the interpreter's torch package:
# find_package(Torch) would look for CUDA, MKL and protobuf for a minute and force flags on every target.
if(MODELPORT_WITH_TORCH)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  if(NOT "${MODELPORT_TORCH_OF}" STREQUAL "${Python_EXECUTABLE}" OR NOT EXISTS "${MODELPORT_TORCH_DIR}")
    # Found without importing it, which takes seconds where nothing of torch was compiled yet.
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c
              "import importlib.metadata as m, importlib.util as u; print(*u.find_spec('torch').submodule_search_locations, m.version('torch'), sep=';')"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_VARIABLE why)
    if(failed)
      message(FATAL_ERROR "MODELPORT_WITH_TORCH needs torch in ${Python_EXECUTABLE}, and there is none:\n${why}")
    endif()
    list(GET found 0 torch_dir)
    list(GET found 1 torch_version)
    set(MODELPORT_TORCH_OF "${Python_EXECUTABLE}" CACHE INTERNAL "interpreter that the torch facts came from")
    set(MODELPORT_TORCH_DIR "${torch_dir}" CACHE INTERNAL "torch package folder")
    set(MODELPORT_TORCH_VERSION "${torch_version}" CACHE INTERNAL "torch version")
  endif()
  message(STATUS "torch ${MODELPORT_TORCH_VERSION} in ${MODELPORT_TORCH_DIR}")

  foreach(part torch_cpu c10 torch_python)
    add_library(torch_${part} SHARED IMPORTED)
    set_target_properties(torch_${part} PROPERTIES IMPORTED_LOCATION "${MODELPORT_TORCH_DIR}/lib/lib${part}.so")
  endforeach()

  add_library(Torch::Torch INTERFACE IMPORTED)
  target_include_directories(Torch::Torch SYSTEM INTERFACE
    "${MODELPORT_TORCH_DIR}/include" "${MODELPORT_TORCH_DIR}/include/torch/csrc/api/include")
  # torch's headers bring an fmt of their own, which stands before the system's: what sees them takes it header-only.
  # AT_PER_OPERATOR_HEADERS: its headers include the operators that they use, else all of them.
  # Every torch since 2.8 has the newer ABI of the C++ library, whatever the compiler here takes by itself.
  target_compile_definitions(Torch::Torch INTERFACE
    _GLIBCXX_USE_CXX11_ABI=1 FMT_HEADER_ONLY=1 AT_PER_OPERATOR_HEADERS)
  # Not libtorch.so: it adds nothing but libtorch_cuda, which a CUDA build of torch loads by itself. Such a build also
  # refers to CUDA libraries that the linker cannot see, hence --allow-shlib-undefined.
  target_link_libraries(Torch::Torch INTERFACE torch_torch_cpu torch_c10)
  target_link_options(Torch::Torch INTERFACE -Wl,--allow-shlib-undefined)

  # With Python's own casters (torch/csrc/utils/pybind.h); pybind11 is the copy torch ships, so that both sides of a
  # cast agree on its internals.
  add_library(Torch::Python INTERFACE IMPORTED)
  target_link_libraries(Torch::Python INTERFACE torch_torch_python Torch::Torch Python::Module)
endif()
