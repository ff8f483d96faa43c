# `partita --emit cpp` writes files that compile: of a partitioned module, and of a module on one device.
#
#   cmake -DPARTITA=partita -DEXAMPLES=examples/partita -DFOLDER=F "-DCOMPILE=g++;-std=c++20;..." -P emit.cmake
file(MAKE_DIRECTORY ${FOLDER})
function(check file first)
  execute_process(COMMAND ${PARTITA} ${ARGN} --emit cpp --out ${FOLDER}/${file} COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${FOLDER}/${file} line LIMIT_COUNT 1)
  if(NOT line STREQUAL first)
    message(FATAL_ERROR "${file} begins with ${line}")
  endif()
  execute_process(COMMAND ${COMPILE} -fsyntax-only ${FOLDER}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
set(mlp ${EXAMPLES}/mlp.mlir)
check(mesh.cpp [[// What each device of the mesh {"M":16} runs, as Partita wrote it.]]
  ${mlp} ${EXAMPLES}/mlp.spec ${EXAMPLES}/mlp.conf)
check(one.cpp "// What one device runs, as Partita wrote it." ${mlp})
