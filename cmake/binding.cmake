# The Python extension modelport._modelport: it translates between Python and the rooms.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/modelport/binding/*.cc")
if(NOT sources)
  return()
endif()

Python_add_library(_modelport MODULE WITH_SOABI ${sources})
target_link_libraries(_modelport PRIVATE
  modelport_capture modelport_driver modelport_flags Torch::Python)
# So that its files include each other as "binding/...", the way rooms do.
target_include_directories(_modelport PRIVATE "${PROJECT_SOURCE_DIR}/python/modelport")
# torch's Python headers take most of a compilation; they are read once.
target_precompile_headers(_modelport PRIVATE <torch/csrc/utils/pybind.h> <torch/csrc/utils/python_symnode.h>)
set_target_properties(_modelport PROPERTIES
  CXX_VISIBILITY_PRESET hidden
  # Installed as site-packages/modelport/_modelport.so, next to site-packages/torch/lib.
  INSTALL_RPATH "$ORIGIN/../torch/lib")
install(TARGETS _modelport LIBRARY DESTINATION modelport COMPONENT python)
