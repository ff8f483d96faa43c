# Installs missing packages, builds the training example for this machine and runs it:
#
#   cmake -P cmake/demo.cmake
#   cmake -P cmake/demo.cmake -- --steps 100      (arguments of the example)
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH source)
set(build ${source}/build/demo)
partita_require(compiler build boost eigen xtensor)
partita_arguments(arguments)
partita_jobs(jobs)
partita_generator(generator)

if(EXISTS ${build}/CMakeCache.txt)
  set(generator_option)  # a build tree keeps its generator
else()
  set(generator_option -G ${generator})
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${source} -B ${build} ${generator_option} -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG" -DPARTITA_NATIVE=ON -DPARTITA_WERROR=OFF
    -DPARTITA_BUILD_EXAMPLES=ON -DPARTITA_BUILD_TESTS=OFF -DPARTITA_BUILD_BENCH=OFF
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_COMMAND} --build ${build} --target train_text --parallel ${jobs}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${build}/examples/train_text ${arguments} COMMAND_ERROR_IS_FATAL ANY)
