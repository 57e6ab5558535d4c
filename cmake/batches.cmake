# Most of a small file's compilation is its headers and the templates in them, so files are compiled several at a time.
# Files that give one name to two private things, which one compilation would confuse, go into different batches.

set(MODELPORT_BATCH_SIZE 24)

# What nearly every file includes is parsed once for all. A cache of compilations does not work with that and saves more,
# and who compiles files one by one wants to hear of an #include that is missing.
set(MODELPORT_PARSE_ONCE OFF)
if(MODELPORT_BATCHES AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(MODELPORT_PARSE_ONCE ON)
endif()

# modelport_parse_once(<target>): a target that does not see torch, which brings another fmt, and has no flags of its own.
function(modelport_parse_once target)
  if(NOT MODELPORT_PARSE_ONCE)
    return()
  endif()
  if(NOT TARGET modelport_parsed)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/parsed.cc" CONTENT "")
    add_library(modelport_parsed OBJECT "${PROJECT_BINARY_DIR}/parsed.cc")
    target_link_libraries(modelport_parsed PRIVATE modelport_fmt modelport_flags)
    target_precompile_headers(modelport_parsed PRIVATE
      <algorithm> <array> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional> <limits> <map> <memory> <numeric>
      <optional> <set> <span> <string> <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector>
      <fmt/format.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM modelport_parsed)
  target_compile_options(${target} PRIVATE -fPIC)  # programs too, or what was parsed for libraries would not serve them
endfunction()

# modelport_batches(<target> <sources...>): the sources, or some of them, of the target.
function(modelport_batches target)
  if(NOT MODELPORT_BATCHES)
    return()
  endif()
  set(count 0)
  foreach(source IN LISTS ARGN)
    modelport_private_names(names "${source}")
    set(batch 0)
    while(batch LESS count)
      set(free TRUE)
      if(sizes_${batch} EQUAL MODELPORT_BATCH_SIZE)
        set(free FALSE)
      endif()
      foreach(name IN LISTS names)
        if("${name}" IN_LIST taken_${batch})
          set(free FALSE)
          break()
        endif()
      endforeach()
      if(free)
        break()
      endif()
      math(EXPR batch "${batch} + 1")
    endwhile()
    if(batch EQUAL count)
      math(EXPR count "${count} + 1")
      set(sizes_${batch} 0)
      set(taken_${batch} "")
    endif()
    math(EXPR sizes_${batch} "${sizes_${batch}} + 1")
    list(APPEND taken_${batch} ${names})
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${batch}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A name that is new may move its file.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
endfunction()

# What a file defines at the start of a line, except members of classes: private things stand in namespaces, whose
# contents are not indented. Each comes with the namespace of its file: equal names in two of them are two things.
function(modelport_private_names result source)
  file(READ "${source}" text)
  string(REGEX MATCHALL "\n[A-Za-z][^\n({=;]*[({=]" starts "${text}")
  string(REGEX MATCH "\nnamespace [A-Za-z_0-9:]+ {" space "${text}")
  string(REGEX REPLACE "[\n {]|namespace" "" space "${space}")
  set(names "")
  foreach(start IN LISTS starts)
    if(start MATCHES "^\nnamespace ")
      continue()  # of one name may be several, and aliases of them that are the same
    endif()
    if(start MATCHES "^\n(struct|class|enum class|enum|using) ([A-Za-z_0-9]+)")
      list(APPEND names "${space}::${CMAKE_MATCH_2}")
    elseif(start MATCHES "[ &*]([A-Za-z_0-9]+)[^A-Za-z_0-9]*[({=]$")
      list(APPEND names "${space}::${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${result} "${names}" PARENT_SCOPE)
endfunction()
