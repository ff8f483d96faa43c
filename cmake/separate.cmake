# partita::separate -- partita::cpu with the engine, the proof, the executor and the kernels compiled once, in a static
# library of the project that uses them, instead of in every translation unit: see partita/support/separate.hpp.
# (partita::cpu_separate is its old name.)
set(partita_separate_sources)
foreach(part IN ITEMS separate_engine separate_prove separate_run run/kernels/table)
  cmake_path(GET part FILENAME name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/partita_${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "#include <partita/${part}.hpp>\n")
  list(APPEND partita_separate_sources ${source})
endforeach()
set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/partita_separate_engine.cpp
  PROPERTY COMPILE_DEFINITIONS PARTITA_SEPARATE_ENGINE)
add_library(partita_separate STATIC EXCLUDE_FROM_ALL ${partita_separate_sources})
add_library(partita::separate ALIAS partita_separate)
add_library(partita::cpu_separate ALIAS partita_separate)
target_link_libraries(partita_separate PUBLIC partita::cpu)
target_compile_definitions(partita_separate PUBLIC PARTITA_SEPARATE)
