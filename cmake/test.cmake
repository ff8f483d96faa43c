# Installs missing packages, builds everything and runs all tests with the default compiler, $CXX or g++:
#
#   cmake -P cmake/test.cmake
#   cmake -P cmake/test.cmake -- --compiler all      GCC, then Clang 19; or gcc, or clang
#   cmake -P cmake/test.cmake -- --random-cases 1000
#
# The sources of a folder are compiled together (PARTITA_UNITED), so that a full build takes a third of the time.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)

set(compilers default)
set(random_cases "")
partita_arguments(arguments)
while(arguments)
  list(POP_FRONT arguments name value)
  if(name STREQUAL "--compiler" AND value STREQUAL "all")
    set(compilers gcc clang)
  elseif(name STREQUAL "--compiler" AND value MATCHES "^(gcc|clang)$")
    set(compilers ${value})
  elseif(name STREQUAL "--random-cases" AND value MATCHES "^[0-9]+$")
    set(random_cases ${value})
  else()
    message(FATAL_ERROR "test.cmake: \"${name} ${value}\" is not an option; known: --compiler gcc|clang|all, "
      "--random-cases N")
  endif()
endwhile()

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH source)
set(gcc_compiler -DCMAKE_CXX_COMPILER=g++)
set(clang_compiler -DCMAKE_CXX_COMPILER=clang++-19)
if(NOT compilers STREQUAL "default")
  partita_require(build gcc ${compilers} boost eigen xtensor doctest)  # Clang uses GCC's standard library
elseif("$ENV{CXX}" STREQUAL "")
  set(compilers gcc)
  partita_require(build gcc boost eigen xtensor doctest)
else()  # CMake reads CXX; this compiler has its own build tree, since a tree keeps its compiler
  string(MAKE_C_IDENTIFIER "$ENV{CXX}" compilers)
  partita_require(build boost eigen xtensor doctest)
endif()
partita_python(python)
partita_chromium(browser)
partita_mpi()
partita_jobs(jobs)
partita_generator(generator)

# Sets VAR to the sum of the passed or failed cases ("test cases: 12 | 11 passed | 1 failed") of all doctest programs.
function(count_cases junit what var)
  set(sum 0)
  string(REGEX MATCHALL "test cases:[^\n]*" lines "${junit}")
  foreach(line IN LISTS lines)
    if(line MATCHES "([0-9]+) ${what}")
      math(EXPR sum "${sum} + ${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(${var} ${sum} PARENT_SCOPE)
endfunction()

set(summary "")
set(bad FALSE)
set(headers_alone ON)
foreach(compiler IN LISTS compilers)
  set(build ${source}/build/test-${compiler})
  set(generator_option -G ${generator})
  if(EXISTS ${build}/CMakeCache.txt)
    set(generator_option)  # a build tree keeps its generator
  endif()
  message(STATUS "Testing with ${compiler}")
  string(TIMESTAMP start "%s")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${source} -B ${build} ${generator_option}
      ${${compiler}_compiler} -DPARTITA_RANDOM_CASES=${random_cases} -DPARTITA_PYTHON=${python}
      -DPARTITA_CHROMIUM=${browser} -DPARTITA_HEADERS_ALONE=${headers_alone}
      -DPARTITA_BUILD_TESTS=ON -DPARTITA_BUILD_EXAMPLES=ON -DPARTITA_BUILD_BENCH=ON -DPARTITA_UNITED=ON
    RESULT_VARIABLE failed)
  set(python)  # all compilers write the same modules, so XLA runs only those of the first
  set(headers_alone OFF)  # all compilers have the same standard library: see tests/package
  if(NOT failed)
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} --parallel ${jobs} RESULT_VARIABLE failed)
  endif()
  if(failed)
    string(APPEND summary "${compiler}: build failed\n")
    set(bad TRUE)
    continue()
  endif()
  string(TIMESTAMP built "%s")
  set(junit_file ${build}/junit.xml)
  file(REMOVE ${junit_file})
  execute_process(
    COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${build} --output-on-failure --parallel ${jobs}
      --no-tests=error --output-junit ${junit_file} --test-output-size-passed 100000
    RESULT_VARIABLE failed)
  string(TIMESTAMP ended "%s")
  math(EXPR build_time "${built} - ${start}")
  math(EXPR test_time "${ended} - ${built}")
  set(junit "")
  if(EXISTS ${junit_file})
    file(READ ${junit_file} junit)
    string(REGEX REPLACE "[][;\\]" " " junit "${junit}")
  endif()
  set(tests 0)
  set(failures 0)
  if(junit MATCHES "tests=\"([0-9]+)\"")
    set(tests ${CMAKE_MATCH_1})
  endif()
  if(junit MATCHES "failures=\"([0-9]+)\"")
    set(failures ${CMAKE_MATCH_1})
  endif()
  count_cases("${junit}" passed cases_passed)
  count_cases("${junit}" failed cases_failed)
  math(EXPR passed "${tests} - ${failures}")
  string(APPEND summary
    "${compiler}: ${passed} passed, ${failures} failed"
    " (of their doctest cases: ${cases_passed} passed, ${cases_failed} failed);"
    " build ${build_time} s, tests ${test_time} s\n")
  if(failed)
    set(bad TRUE)
  endif()
endforeach()

string(STRIP "${summary}" summary)
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "\n${summary}")
if(bad)
  message(FATAL_ERROR "tests failed")
endif()
