# Configures, builds and runs the project in foreign/, which finds the library in one WAY:
#   installed      find_package after `cmake --install`; also builds the README's first project, in first/
#   without_cpu    the same on a machine without Eigen: partita::partita works, the component cpu is refused
#   subdirectory   add_subdirectory
#   fetched        FetchContent
# Variables: SOURCE (the library), BUILD (its build tree), WORK (scratch), GENERATOR, COMPILER, FLAGS, PREFIXES.
file(REMOVE_RECURSE ${WORK})
set(options -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_FLAGS=${FLAGS}" -DWAY=${WAY})
set(programs engine)
if(WAY STREQUAL "installed" OR WAY STREQUAL "without_cpu")
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND options "-DCMAKE_PREFIX_PATH=${WORK}/prefix\;${PREFIXES}")
else()
  list(APPEND options -DPARTITA_SOURCE=${SOURCE} "-DCMAKE_PREFIX_PATH=${PREFIXES}")
endif()
if(WAY STREQUAL "without_cpu")
  list(APPEND options -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/foreign -B ${WORK}/refused ${options} -DCOMPONENTS=cpu
    OUTPUT_QUIET ERROR_VARIABLE text RESULT_VARIABLE failed)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(NOT failed OR NOT text MATCHES "component cpu needs Eigen 3 and xtensor")
    message(FATAL_ERROR "component cpu is not refused although Eigen is missing:\n${text}")
  endif()
elseif(WAY STREQUAL "installed")
  list(APPEND options -DCOMPONENTS=cpu)
  list(APPEND programs cpu)  # the other ways differ only in whether the targets exist
endif()

execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/foreign -B ${WORK}/build ${options}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --target ${programs}
  COMMAND_ERROR_IS_FATAL ANY)
foreach(program IN LISTS programs)
  execute_process(COMMAND ${WORK}/build/${program} COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# The README's program in the README's project, which compiles the library once (partita::separate).
if(WAY STREQUAL "installed")
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/first DESTINATION ${WORK})
  configure_file(${SOURCE}/tests/golden/readme.cpp ${WORK}/first/strategy_test.cpp COPYONLY)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/first -B ${WORK}/first/build ${options}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/first/build COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/first/build --no-tests=error --output-on-failure
    COMMAND_ERROR_IS_FATAL ANY)
endif()
