// copy_arrays FROM TO copies the arrays of a file into another file of any format.
#include <iostream>

#include <partita/cpu.hpp>
#include <partita/files.hpp>

int main(int count, char** words) {
  if (count != 3) return 2;
  try {
    partita::save(words[2], partita::load(words[1]));
  } catch (const partita::error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
