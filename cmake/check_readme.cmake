# The first C++ block of the README is the test tests/golden/readme.cpp, letter by letter.
cmake_minimum_required(VERSION 3.25)
set(root ${CMAKE_CURRENT_LIST_DIR}/..)
file(READ ${root}/README.md readme)
file(READ ${root}/tests/golden/readme.cpp code)
string(FIND "${readme}" "```cpp\n${code}```" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the README does not show tests/golden/readme.cpp as it is")
endif()
