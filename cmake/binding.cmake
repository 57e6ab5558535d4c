# The Python extension modelport._modelport: it translates between Python and the rooms.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/modelport/binding/*.cc")
if(NOT sources)
  return()
endif()

if(NOT MODELPORT_WITH_EXECUTORCH)
  list(FILTER sources EXCLUDE REGEX "/executorch\\.cc$")
endif()

Python_add_library(_modelport MODULE WITH_SOABI ${sources})
target_link_libraries(_modelport PRIVATE
  modelport_capture modelport_driver modelport_flags Torch::Python)
if(MODELPORT_WITH_EXECUTORCH)
  target_link_libraries(_modelport PRIVATE modelport_backends_executorch)
  target_compile_definitions(_modelport PRIVATE MODELPORT_WITH_EXECUTORCH)
endif()
# So that its files include each other as "binding/...", the way rooms do.
target_include_directories(_modelport PRIVATE "${PROJECT_SOURCE_DIR}/python/modelport")
modelport_batches(_modelport ${sources})
set_target_properties(_modelport PROPERTIES
  CXX_VISIBILITY_PRESET hidden
  # Installed as site-packages/modelport/_modelport.so, next to site-packages/torch/lib.
  INSTALL_RPATH "$ORIGIN/../torch/lib")
install(TARGETS _modelport LIBRARY DESTINATION modelport COMPONENT python)

# modelport._artifact looks into artifacts without torch: it takes pybind11's headers from there and links none of it.
file(GLOB artifact_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/modelport/binding/artifact/*.cc")
if(NOT MODELPORT_WITH_EXECUTORCH)
  list(FILTER artifact_sources EXCLUDE REGEX "/executorch\\.cc$")
endif()
Python_add_library(_artifact MODULE WITH_SOABI ${artifact_sources}
  "${PROJECT_SOURCE_DIR}/python/modelport/binding/errors.cc")
if(MODELPORT_WITH_EXECUTORCH)
  target_link_libraries(_artifact PRIVATE modelport_backends_executorch)
  target_compile_definitions(_artifact PRIVATE MODELPORT_WITH_EXECUTORCH)
endif()
modelport_batches(_artifact ${artifact_sources})
target_link_libraries(_artifact PRIVATE modelport_driver modelport_flags Python::Module)
target_include_directories(_artifact PRIVATE "${PROJECT_SOURCE_DIR}/python/modelport")
target_include_directories(_artifact SYSTEM PRIVATE "${MODELPORT_TORCH_DIR}/include")
target_compile_definitions(_artifact PRIVATE FMT_HEADER_ONLY=1 MODELPORT_TORCH_VERSION="${MODELPORT_TORCH_VERSION}")
set_target_properties(_artifact PROPERTIES CXX_VISIBILITY_PRESET hidden)
install(TARGETS _artifact LIBRARY DESTINATION modelport COMPONENT python)
