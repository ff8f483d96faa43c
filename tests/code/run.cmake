# Writes programs as device code and compiles them with the compiler of the tests (STEP compile), or runs them (STEP run):
# their results have the bits of emulate. Every program is a file that compiles alone; here one file includes all of
# them, which takes a minute less.
#
#   cmake -DSTEP=compile -DWRITE=write_code_programs -DFOLDER=F -DRANKS=4 "-DCOMPILE=g++;-std=c++20;..."
#     "-DLAUNCH=mpirun;..." -P run.cmake
if(STEP STREQUAL "compile")
  file(REMOVE_RECURSE ${FOLDER})
  file(MAKE_DIRECTORY ${FOLDER})
  execute_process(COMMAND ${WRITE} ${FOLDER} ${RANKS} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${COMPILE} -O0 ${FOLDER}/all.cpp -o ${FOLDER}/all -pthread COMMAND_ERROR_IS_FATAL ANY)
  if(NOT LAUNCH)
    execute_process(COMMAND ${COMPILE} -O1 ${FOLDER}/0.cpp -o ${FOLDER}/alone -pthread COMMAND_ERROR_IS_FATAL ANY)
  endif()
  return()
endif()
execute_process(COMMAND ${LAUNCH} ${FOLDER}/all ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
# One of them alone, as a user runs it.
if(NOT LAUNCH)
  execute_process(COMMAND ${FOLDER}/alone ${FOLDER}/0.in ${FOLDER}/alone.out COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${FOLDER}/alone.out ${FOLDER}/0.out COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${FOLDER}/alone COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${FOLDER}/alone ${FOLDER}/0.cpp ${FOLDER}/alone.out RESULT_VARIABLE status ERROR_VARIABLE said)
  if(status EQUAL 0 OR NOT said MATCHES "E021 code: the inputs take 9216 bytes; .* has ")
    message(FATAL_ERROR "inputs of another size: status ${status}, ${said}")
  endif()
  execute_process(COMMAND ${FOLDER}/alone ${FOLDER}/0.in ${FOLDER}/none/alone.out RESULT_VARIABLE status ERROR_VARIABLE said)
  if(status EQUAL 0 OR NOT said MATCHES "E022 code: .*none/alone.out cannot be written")
    message(FATAL_ERROR "outputs that cannot be written: status ${status}, ${said}")
  endif()
endif()
