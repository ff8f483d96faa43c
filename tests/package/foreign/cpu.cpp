#include <partita/cpu.hpp>
#include <partita/partita.hpp>

partita::shape from_the_other_unit();

int main() { return from_the_other_unit() == partita::shape{256, 8} ? 0 : 1; }
