# Compiles one case without and with -DFAIL and checks the compiler's output; see CMakeLists.txt.
# Variables: COMPILER, FLAGS (list), FLAGS_FILE (one flag per line), IMPLICIT (the compiler's own include directories),
# HEADER (precompiled, included by all cases), SOURCE. Without SOURCE, the script precompiles HEADER. With CONTROL=OFF
# it skips the control, which is compiled elsewhere.
cmake_minimum_required(VERSION 3.25)

function(refuse reason)
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${ARGN}")
  message(FATAL_ERROR "refused: ${reason}")
endfunction()

# Makes a text safe for lists: ";", "[" and "]" would split or join their elements.
string(ASCII 29 semicolon)
string(ASCII 30 open)
string(ASCII 31 close)
macro(guard var)
  string(REPLACE ";" "${semicolon}" ${var} "${${var}}")
  string(REPLACE "[" "${open}" ${var} "${${var}}")
  string(REPLACE "]" "${close}" ${var} "${${var}}")
endmacro()
macro(unguard var)
  string(REPLACE "${semicolon}" ";" ${var} "${${var}}")
  string(REPLACE "${open}" "[" ${var} "${${var}}")
  string(REPLACE "${close}" "]" ${var} "${${var}}")
endmacro()

file(STRINGS ${FLAGS_FILE} file_flags)
foreach(directory IN LISTS IMPLICIT)
  list(REMOVE_ITEM file_flags -I${directory})  # naming these again would change their order
endforeach()
set(compile ${CMAKE_COMMAND} -E env LC_ALL=C ${COMPILER} ${FLAGS} ${file_flags})
if(NOT DEFINED SOURCE)
  execute_process(COMMAND ${compile} -x c++-header ${HEADER} -o ${HEADER}.gch COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()
list(APPEND compile -fsyntax-only -fdiagnostics-color=never -fmessage-length=0 -include ${HEADER})

file(READ ${SOURCE} source)
guard(source)
string(REGEX MATCHALL "// expect: [^\n]+" expected "${source}")
if(NOT expected)
  refuse("no line \"// expect: ...\"")
endif()

if(NOT DEFINED CONTROL OR CONTROL)
  execute_process(COMMAND ${compile} ${SOURCE}
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE failed)
  if(failed)
    refuse("the control does not compile" "${text}")
  endif()
endif()
execute_process(COMMAND ${compile} -DFAIL ${SOURCE}
  OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE failed)
if(NOT failed)
  refuse("the variant compiles")
endif()

# The compiler's own lines start with a place, quoted source lines with blanks. The text is a template argument,
# partita_error<partita::fixed_text<9>{"..."}>. Clang splits it into pieces and prints them in the error; GCC prints it
# in the note that belongs to the error.
set(piece "[a-z_:]*fixed_text<[0-9]+>{\"")
set(argument "partita_error<${piece}")
set(shown "${text}")
guard(shown)
string(REGEX MATCHALL "(^|\n)[^ \n][^\n]*: (fatal )?error: [^\n]*" errors "${shown}")
string(REGEX MATCHALL "(^|\n)[^ \n][^\n]*: error: [^\n]*${argument}[^\n]*" messages "${shown}")
string(REGEX MATCHALL "(^|\n)[^ \n][^\n]*: note: [^\n]*${argument}[^\n]*>::none[^\n]* evaluates to false"
  notes "${shown}")
list(APPEND messages ${notes})

# Restores the text as it was written: joins the pieces and removes repeated quotes and blanks.
set(written "")
foreach(message IN LISTS messages)
  string(REGEX REPLACE "^.*${argument}" "" message "${message}")
  string(REGEX REPLACE "([^\\])\"}, ${piece}" "\\1" message "${message}")
  string(REGEX REPLACE "\"}>::none.*$" "" message "${message}")
  string(REPLACE "\\\"" "\"" message "${message}")
  string(REPLACE "\\'" "'" message "${message}")
  string(REGEX REPLACE " +" " " message "${message}")
  string(APPEND written "${message}\n")
endforeach()
unguard(written)
foreach(wanted IN LISTS expected)
  unguard(wanted)
  string(REPLACE "// expect: " "" wanted "${wanted}")
  string(STRIP "${wanted}" wanted)
  string(REGEX REPLACE " +" " " wanted "${wanted}")
  string(FIND "${written}" "${wanted}" at)
  if(at EQUAL -1)
    refuse("the text is missing" "expected in partita_error<...>: ${wanted}\n${text}")
  endif()
endforeach()

# "// lines: CAUSE ALL": the maximum number of lines up to the text, and of all lines.
if(source MATCHES "// lines: ([0-9]+) ([0-9]+)")
  set(most_before ${CMAKE_MATCH_1})
  set(most ${CMAKE_MATCH_2})
  string(REGEX REPLACE "\n$" "" lines "${shown}")
  string(REPLACE "\n" ";" lines "${lines}")
  list(LENGTH lines length)
  set(cause 0)
  foreach(line IN LISTS lines)
    math(EXPR cause "${cause} + 1")
    if(line MATCHES "${piece}")
      break()
    endif()
  endforeach()
  if(cause GREATER most_before OR length GREATER most)
    refuse("too many lines"
      "${cause} lines until the cause, ${length} in all; ${most_before} and ${most} are allowed:\n${text}")
  endif()
endif()

list(LENGTH errors count)
if(count GREATER 1)
  refuse("more than one error" "${count} errors for one mistake:\n${text}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${count} error(s):\n${written}")
