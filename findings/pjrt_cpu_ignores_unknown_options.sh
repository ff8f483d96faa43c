#!/usr/bin/env bash
# PJRT C API (xla-cpu-pjrt 0.0.1, API 0.81): the CPU plugin makes a client although an option that it is given does not
# exist.
#
# Guess before the first run: an unknown create option is an error, as named values have types and lengths to be checked.
# Seen: the client is made without an error, and the misspelled option (cpu_device_cuont) has no effect.
#
# Consequence for Partita: xla::client counts the devices after it has made a client, and too few are the error E004; it
# does not trust that options took effect.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install xla-cpu-pjrt==0.0.1
wheel=$(echo "$folder"/venv/lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt)
cat > "$folder/options.cpp" <<'CPP'
#include <dlfcn.h>
#include <pjrt_c_api.h>
#include <cstdio>
#include <cstring>
#include <initializer_list>
int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  const auto* api = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  std::printf("API %d.%d\n", api->pjrt_api_version.major_version, api->pjrt_api_version.minor_version);
  PJRT_Plugin_Initialize_Args start{};
  start.struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE;
  api->PJRT_Plugin_Initialize(&start);
  for (const char* name : {"cpu_device_count", "cpu_device_cuont"}) {
    PJRT_NamedValue option{};
    option.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    option.name = name;
    option.name_size = std::strlen(name);
    option.type = PJRT_NamedValue_kInt64;
    option.int64_value = 3;
    option.value_size = 1;
    PJRT_Client_Create_Args create{};
    create.struct_size = PJRT_Client_Create_Args_STRUCT_SIZE;
    create.create_options = &option;
    create.num_options = 1;
    if (api->PJRT_Client_Create(&create) != nullptr) {
      std::printf("%s: error\n", name);
      continue;
    }
    PJRT_Client_Devices_Args devices{};
    devices.struct_size = PJRT_Client_Devices_Args_STRUCT_SIZE;
    devices.client = create.client;
    api->PJRT_Client_Devices(&devices);
    std::printf("%s: no error, %s\n", name, devices.num_devices == 3 ? "3 devices" : "another number of devices");
  }
}
CPP
g++ -std=c++17 -I"$wheel/include" "$folder/options.cpp" -o "$folder/options" -ldl
env -u XLA_FLAGS "$folder/options" "$wheel/xla_cpu_pjrt.so" 2> /dev/null | tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
API 0.81
cpu_device_count: no error, 3 devices
cpu_device_cuont: no error, another number of devices
SEEN
echo "as seen"
