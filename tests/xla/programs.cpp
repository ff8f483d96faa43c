// Programs of every kind on XLA, without Python: the plugin of $PARTITA_PJRT_PLUGIN with four CPU
// devices. Results agree with `emulate`. Without a plugin: exit status 77, which skips the test.
#include <cstdlib>
#include <iostream>

#include "xla_test.hpp"

static_assert(partita::BackendExecutable<partita::xla::executable>);

int main() {
  if (std::getenv("PARTITA_PJRT_PLUGIN") == nullptr) {
    std::cout << "skipped: PARTITA_PJRT_PLUGIN names no plugin\n";
    return 77;
  }
  xla_tests::xla_test t(partita::xla::client({}, {.devices = 4}));
  backend_programs::check_all(t);
  return t.differing() == 0 ? 0 : 1;
}
