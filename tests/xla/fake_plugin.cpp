// A PJRT plugin for tests of clients with several processes, which the CPU plugin does not have:
// two devices in each process, buffers in host memory. The client finds the other processes through
// the key-value store, as that for GPUs does. A program returns its arguments.
#include <pjrt_c_api.h>

#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

struct PJRT_Error {
  std::string message;
  PJRT_Error_Code code;
};
struct PJRT_DeviceDescription {
  int id;
};
struct PJRT_Device {
  PJRT_DeviceDescription description;
};
struct PJRT_Buffer {
  std::string bytes;
};
struct PJRT_Client {
  std::vector<PJRT_Device> all;
  std::vector<PJRT_Device*> devices, own;
};
struct PJRT_LoadedExecutable {};
struct PJRT_Executable {};

namespace {

PJRT_Error* fail(const std::string& message) {
  return new PJRT_Error{message, PJRT_Error_Code_INTERNAL};
}
PJRT_Error* callback_error(PJRT_Error_Code code, const char* message, size_t size) {
  return new PJRT_Error{{message, size}, code};
}
PJRT_CallbackError to_error = &callback_error;

/// Returns the value of a key, or the error of the store.
PJRT_Error* value_of(PJRT_Client_Create_Args* a, const std::string& key, int wait,
                     std::string& value) {
  const auto ask = [&](auto args, auto callback, void* user) {
    args.struct_size = sizeof args;
    args.key = key.data();
    args.key_size = key.size();
    args.callback_error = &to_error;
    args.user_arg = user;
    if constexpr (requires { args.timeout_in_ms; }) args.timeout_in_ms = wait;
    PJRT_Error* const failed = callback(&args);
    if (failed != nullptr) return failed;
    value.assign(args.value, args.value_size);
    args.value_deleter_callback(args.value);
    return failed;
  };
  if (wait == 0)
    return ask(PJRT_KeyValueTryGetCallback_Args{}, a->kv_try_get_callback, a->kv_try_get_user_arg);
  return ask(PJRT_KeyValueGetCallback_Args{}, a->kv_get_callback, a->kv_get_user_arg);
}

PJRT_Error* create(PJRT_Client_Create_Args* a) {
  std::map<std::string, std::int64_t> options;
  for (size_t i = 0; i < a->num_options; ++i)
    options[{a->create_options[i].name, a->create_options[i].name_size}] =
        a->create_options[i].int64_value;
  if (options.contains("cpu_device_count")) return fail("unknown option cpu_device_count");
  const std::int64_t me = options["node_id"], nodes = options["num_nodes"];
  if (nodes > 1) {
    const std::string key = "fake/" + std::to_string(me), value = std::string("2\0", 2) + key;
    PJRT_KeyValuePutCallback_Args put{};
    put.struct_size = sizeof put;
    put.key = key.data();
    put.key_size = key.size();
    put.value = value.data();
    put.value_size = value.size();
    put.callback_error = &to_error;
    put.user_arg = a->kv_put_user_arg;
    if (PJRT_Error* failed = a->kv_put_callback(&put)) return failed;
    std::string found;
    for (std::int64_t n = 0; n < nodes; ++n) {
      const std::string other = "fake/" + std::to_string(n);
      if (PJRT_Error* failed = value_of(a, other, 20000, found)) return failed;
      if (found != std::string("2\0", 2) + other) return fail("another value of " + other);
    }
    for (const auto& [wait, code] :
         {std::pair{0, PJRT_Error_Code_NOT_FOUND}, {50, PJRT_Error_Code_DEADLINE_EXCEEDED}}) {
      const std::unique_ptr<PJRT_Error> failed(value_of(a, "nothing", wait, found));
      if (failed == nullptr || failed->code != code) return fail("a key that nobody put");
    }
  }
  a->client = new PJRT_Client;
  a->client->all.resize(2 * static_cast<size_t>(std::max<std::int64_t>(nodes, 1)));
  for (size_t i = 0; i < a->client->all.size(); ++i) {
    a->client->all[i].description.id = 10 + static_cast<int>(i);
    a->client->devices.push_back(&a->client->all[i]);
    if (static_cast<std::int64_t>(i / 2) == me) a->client->own.push_back(&a->client->all[i]);
  }
  return nullptr;
}

PJRT_Error* put(PJRT_Client_BufferFromHostBuffer_Args* a) {
  bool own = false;
  for (PJRT_Device* each : a->client->own) own = own || each == a->device;
  if (!own) return fail("a copy to a device of another process");
  std::vector<std::int64_t> strides(a->num_dims, 4);  // elements have four bytes
  for (size_t d = a->num_dims; d-- > 1;) strides[d - 1] = strides[d] * a->dims[d];
  if (a->num_byte_strides > 0)
    strides.assign(a->byte_strides, a->byte_strides + a->num_byte_strides);
  const std::int64_t count = std::accumulate(a->dims, a->dims + a->num_dims, std::int64_t{1},
                                             [](auto x, auto y) { return x * y; });
  a->buffer = new PJRT_Buffer;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, at = 0;
    for (size_t d = a->num_dims; d-- > 0; rest /= a->dims[d]) at += rest % a->dims[d] * strides[d];
    a->buffer->bytes.append(static_cast<const char*>(a->data) + at, 4);
  }
  a->done_with_host_buffer = nullptr;
  return nullptr;
}
PJRT_Error* compile(PJRT_Client_Compile_Args* a) {
  const std::string options(a->compile_options, a->compile_options_size);
  std::string ids;
  for (const PJRT_Device& each : a->client->all) ids += static_cast<char>(each.description.id);
  if (options.find(ids) == options.npos) return fail("the devices are not those of all processes");
  a->executable = new PJRT_LoadedExecutable;
  return nullptr;
}
PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* a) {
  if (a->num_devices != 2) return fail("runs on the two devices of this process");
  for (size_t d = 0; d < a->num_devices; ++d)
    for (size_t i = 0; i < a->num_args; ++i)
      a->output_lists[d][i] = new PJRT_Buffer(*a->argument_lists[d][i]);
  return nullptr;
}

}  // namespace

extern "C" const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = [] {
    PJRT_Api f{};
    f.struct_size = sizeof f;
    f.pjrt_api_version = {sizeof(PJRT_Api_Version), nullptr, PJRT_API_MAJOR, PJRT_API_MINOR};
    f.PJRT_Error_Message = [](auto* a) {
      a->message = a->error->message.data();
      a->message_size = a->error->message.size();
    };
    f.PJRT_Error_GetCode = [](auto* a) -> PJRT_Error* {
      a->code = a->error->code;
      return nullptr;
    };
    f.PJRT_Error_Destroy = [](auto* a) { delete a->error; };
    f.PJRT_Plugin_Initialize = [](auto*) -> PJRT_Error* { return nullptr; };
    f.PJRT_Client_Create = &create;
    f.PJRT_Client_Destroy = [](auto* a) -> PJRT_Error* {
      delete a->client;
      return nullptr;
    };
    f.PJRT_Client_PlatformName = [](auto* a) -> PJRT_Error* {
      a->platform_name = "fake";
      a->platform_name_size = 4;
      return nullptr;
    };
    f.PJRT_Client_Devices = [](auto* a) -> PJRT_Error* {
      a->devices = a->client->devices.data();
      a->num_devices = a->client->devices.size();
      return nullptr;
    };
    f.PJRT_Client_AddressableDevices = [](auto* a) -> PJRT_Error* {
      a->addressable_devices = a->client->own.data();
      a->num_addressable_devices = a->client->own.size();
      return nullptr;
    };
    f.PJRT_Device_GetDescription = [](auto* a) -> PJRT_Error* {
      a->device_description = &a->device->description;
      return nullptr;
    };
    f.PJRT_DeviceDescription_Id = [](auto* a) -> PJRT_Error* {
      a->id = a->device_description->id;
      return nullptr;
    };
    f.PJRT_Client_BufferFromHostBuffer = &put;
    f.PJRT_Buffer_Destroy = [](auto* a) -> PJRT_Error* {
      delete a->buffer;
      return nullptr;
    };
    f.PJRT_Buffer_ToHostBuffer = [](auto* a) -> PJRT_Error* {
      std::memcpy(a->dst, a->src->bytes.data(), a->src->bytes.size());
      a->event = nullptr;
      return nullptr;
    };
    f.PJRT_Client_Compile = &compile;
    f.PJRT_LoadedExecutable_GetExecutable = [](auto* a) -> PJRT_Error* {
      a->executable = new PJRT_Executable;
      return nullptr;
    };
    f.PJRT_Executable_Destroy = [](auto* a) -> PJRT_Error* {
      delete a->executable;
      return nullptr;
    };
    f.PJRT_LoadedExecutable_Destroy = [](auto* a) -> PJRT_Error* {
      delete a->executable;
      return nullptr;
    };
    f.PJRT_LoadedExecutable_Execute = &execute;
    return f;
  }();
  return &api;
}
