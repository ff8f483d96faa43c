# Tests the prose check (CHECK) itself: it accepts a tree in plain English and refuses each fault by its message.
file(REMOVE_RECURSE ${WORK})

# Writes a tree without faults to WORK/name and sets `root` to it.
function(write_tree name)
  set(root ${WORK}/${name})
  file(WRITE ${root}/README.md
    "# A project\n\nSee [the library](include) and [its limits](include/README.md#known-limits).\n")
  file(WRITE ${root}/include/README.md "# Library\n\n## Known limits\n\nIt partitions `behind` one mesh.\n")
  file(WRITE ${root}/include/mesh.hpp
    "// The axes of a mesh, outermost first.\nauto error = \"axis \\\"B\\\" does not exist\";\n")
  file(WRITE ${root}/tests/mesh.cpp "int x = 0;  // an index\n")
  set(root ${root} PARENT_SCOPE)
endfunction()

# Runs the check on `root`. It must fail with this text, or pass if the text is empty.
function(expect_refusal name fault)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DLIMIT=0 -DLIST=ON -P ${CHECK}
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE failed)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")  # CMake wraps long messages
  string(FIND "${text}" "${fault}" at)
  if(fault STREQUAL "" AND failed)
    message(FATAL_ERROR "${name} is refused:\n${text}")
  elseif(NOT fault STREQUAL "" AND (NOT failed OR at EQUAL -1))
    message(FATAL_ERROR "${name} is not refused with \"${fault}\":\n${text}")
  endif()
endfunction()

write_tree(plain)
expect_refusal(plain "")

write_tree(comment)
file(APPEND ${root}/tests/mesh.cpp "int y = 0;  // the one that stands behind x\n")
expect_refusal(comment "comments have 1 phrases")
expect_refusal(comment "tests/mesh.cpp: comment: the one that stands behind x")

write_tree(comment_block)
file(APPEND ${root}/include/mesh.hpp "/// An index of which nobody asks.\nint y = 0;\n")
expect_refusal(comment_block "include/mesh.hpp: comment: an index of which nobody asks.")

write_tree(script)
file(WRITE ${root}/tests/CMakeLists.txt "# The place where it stands\nadd_test(NAME behind COMMAND test)\n")
expect_refusal(script "comments have 1 phrases")
expect_refusal(script "tests/CMakeLists.txt: comment: the place where it stands")

write_tree(question)
file(APPEND ${root}/tests/mesh.cpp "// Is it zero?")
expect_refusal(question "1 comment lines end with a question mark")

write_tree(what)
file(WRITE ${root}/tests/mesh.cpp "// What an index is.\nint x = 0;\n")
expect_refusal(what "1 comments begin with \"What\"")

write_tree(message)
file(APPEND ${root}/include/mesh.hpp "auto other = \"\\\"B\\\" is no axis\";\n")
expect_refusal(message "messages have 1 phrases")

write_tree(phrase)
file(APPEND ${root}/include/README.md "The mesh stands first.\n")
expect_refusal(phrase "README files have 1 phrases")

write_tree(sentence)
string(REPEAT "a mesh has axes and " 9 words)  # 45 words
string(REGEX REPLACE "and a" "and\na" words "${words}")
file(APPEND ${root}/README.md "\n${words}.\n")
expect_refusal(sentence "README.md: a sentence of 45 words")

write_tree(mean)
string(REPEAT "a mesh has\nsome axes " 7 words)  # 35 words
file(APPEND ${root}/README.md "\n${words}.\n\n${words}.\n\n${words}.\n")
expect_refusal(mean "words on average, the limit is 18")

write_tree(line)
string(REPEAT "Short. " 18 words)  # 126 columns
file(APPEND ${root}/README.md "\n${words}\n")
expect_refusal(line "README.md: a line of more than 120 columns")

write_tree(anchor)
file(APPEND ${root}/README.md "See [its limits](include/README.md#unknown-limits).\n")
expect_refusal(anchor "README.md: include/README.md#unknown-limits names a heading that does not exist")

write_tree(own_anchor)
file(APPEND ${root}/README.md "See [above](#above).\n")
expect_refusal(own_anchor "README.md: #above names a heading that does not exist")

write_tree(file)
file(APPEND ${root}/include/README.md "See [examples](../examples/README.md).\n")
expect_refusal(file "include/README.md: ../examples/README.md does not exist")
