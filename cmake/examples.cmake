# C++ programs that use Modelport as a library; each is built and run by the tests.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/cpp/*.cc")
if(NOT BUILD_TESTING)
  return()
endif()

foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(example_${name} "${source}")
  target_link_libraries(example_${name} PRIVATE modelport_capture modelport_driver modelport_flags)
  add_test(NAME example_${name} COMMAND example_${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(example_${name} PROPERTIES TIMEOUT 300)
endforeach()
