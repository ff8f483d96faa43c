/// Devices of a PJRT plugin, and buffers on them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <partita/backend/process_group.hpp>
#include <partita/backend/xla/plugin.hpp>
#include <partita/run/array.hpp>

namespace partita::xla {

/// An option of a plugin, such as {"memory_fraction", 0.5f} of the CUDA plugin.
struct plugin_option {
  std::string name;
  std::variant<std::int64_t, float, bool, std::string> value;
};
struct client_options {
  /// Number of devices. The CPU plugin makes as many; of others, the first ones are used. 0: all.
  int devices = 0;
  std::vector<plugin_option> plugin = {};
  /// The processes whose devices the client has together: GPUs of several nodes. All of them make
  /// the client, and the same calls. Default: this process alone.
  process_group group = {};
};

}  // namespace partita::xla

namespace partita::backend_detail {

/// Does what a plugin asks of the key_value_store: a callback of PJRT_Client_Create.
template <class Args>
PJRT_Error* use_store(Args* a) {
  PJRT_Error_Code code = PJRT_Error_Code_INTERNAL;
  std::string reason, key(a->key, a->key_size);
  try {
    auto& store = *static_cast<key_value_store*>(a->user_arg);
    if constexpr (requires { a->value_deleter_callback; }) {
      int limit = 0;
      if constexpr (requires { a->timeout_in_ms; }) limit = a->timeout_in_ms;
      if (const auto found = store.get(key, std::chrono::milliseconds(limit))) {
        a->value = new char[found->size()];
        a->value_size = found->size();
        a->value_deleter_callback = [](char* value) { delete[] value; };
        std::memcpy(a->value, found->data(), found->size());
        return nullptr;
      }
      code = limit > 0 ? PJRT_Error_Code_DEADLINE_EXCEEDED : PJRT_Error_Code_NOT_FOUND;
      reason = "no process has put key \"" + key + '"';
    } else {
      store.put(key, {a->value, a->value_size});
      return nullptr;
    }
  } catch (const std::exception& e) {
    reason = e.what();
  }
  return (*a->callback_error)(code, reason.data(), reason.size());
}

/// A client of a plugin, with its devices.
class pjrt_client {
 public:
  /// Errors    those of pjrt_plugin; E001 the plugin cannot make a client, E004 too few devices
  pjrt_client(const std::string& plugin, const xla::client_options& o)
      : plugin_(pjrt_plugin::load(plugin)), group_(o.group) {
    PJRT_Error* failed = create(o, o.devices > 0);
    if (failed != nullptr && o.devices > 0) {  // the plugin cannot choose their number
      plugin_->destroy(failed);
      failed = create(o, false);
    }
    need(failed, "E001", "plugin \"", std::string_view(plugin_->path()), "\" has no client");
    auto name = pjrt_args<PJRT_Client_PlatformName_Args>();
    name.client = client_;
    need(api().PJRT_Client_PlatformName(&name), "E001", "the name of the platform");
    platform_.assign(name.platform_name, name.platform_name_size);
    auto all = pjrt_args<PJRT_Client_Devices_Args>();
    all.client = client_;
    need(api().PJRT_Client_Devices(&all), "E001", "the devices of the client");
    auto own = pjrt_args<PJRT_Client_AddressableDevices_Args>();
    own.client = client_;
    need(api().PJRT_Client_AddressableDevices(&own), "E001", "the devices of this process");
    own_.insert(own.addressable_devices, own.addressable_devices + own.num_addressable_devices);
    for (std::size_t i = 0; i < all.num_devices; ++i)
      if (o.group.processes > 1 || owns(all.devices[i])) devices_.push_back(all.devices[i]);
    if (o.devices > 0) need_devices(o.devices, "the client");
    if (o.devices > 0) devices_.resize(static_cast<std::size_t>(o.devices));
  }
  pjrt_client(const pjrt_client&) = delete;
  pjrt_client& operator=(const pjrt_client&) = delete;
  ~pjrt_client() {
    if (client_ == nullptr) return;
    auto d = pjrt_args<PJRT_Client_Destroy_Args>();
    d.client = client_;
    plugin_->destroy(api().PJRT_Client_Destroy(&d));
  }

  const PJRT_Api& api() const { return plugin_->api(); }
  const pjrt_plugin& plugin() const { return *plugin_; }
  PJRT_Client* get() const { return client_; }
  const std::string& platform() const { return platform_; }
  const std::vector<PJRT_Device*>& devices() const { return devices_; }  ///< of all processes
  /// True if the device belongs to this process, which only then can copy from and to it.
  bool owns(PJRT_Device* device) const { return own_.contains(device); }
  const process_group& group() const { return group_; }
  template <class... What>
  void need(PJRT_Error* failed, std::string_view code, const What&... what) const {
    plugin_->need(failed, code, what...);
  }
  /// Errors    E004
  void need_devices(std::int64_t count, std::string_view who) const {
    if (static_cast<std::int64_t>(devices_.size()) < count)
      throw error(concat("E004 xla: ", who, " needs ", count, " devices; platform ",
                         std::string_view(platform_), " has ",
                         static_cast<std::int64_t>(devices_.size()),
                         "; client_options::devices gives a CPU more"));
  }
  /// Returns the memory of this kind that a device has; null, its own memory, for no kind. `name`
  /// is that of the array.
  ///
  /// Errors    E009 the device has no such memory
  PJRT_Memory* memory_of(PJRT_Device* device, std::string_view kind, std::string_view name) const {
    if (kind.empty()) return nullptr;
    auto list = pjrt_args<PJRT_Device_AddressableMemories_Args>();
    list.device = device;
    need(api().PJRT_Device_AddressableMemories(&list), "E009", "the memories of a device");
    text known;
    for (std::size_t i = 0; i < list.num_memories; ++i) {
      auto each = pjrt_args<PJRT_Memory_Kind_Args>();
      each.memory = list.memories[i];
      need(api().PJRT_Memory_Kind(&each), "E009", "the kind of a memory");
      const std::string_view has(each.kind, each.kind_size);
      if (has == kind) return list.memories[i];
      known << (i > 0 ? ", " : "") << has;
    }
    throw error(concat("E009 xla: \"", name, "\" is in memory \"", kind, "\"; device ",
                       id_of(device), " of platform ", std::string_view(platform_),
                       " has: ", known));
  }
  int id_of(PJRT_Device* device) const {
    auto about = pjrt_args<PJRT_Device_GetDescription_Args>();
    about.device = device;
    need(api().PJRT_Device_GetDescription(&about), "E001", "the description of a device");
    auto id = pjrt_args<PJRT_DeviceDescription_Id_Args>();
    id.device_description = about.device_description;
    need(api().PJRT_DeviceDescription_Id(&id), "E001", "the number of a device");
    return id.id;
  }

 private:
  PJRT_Error* create(const xla::client_options& o, bool count_devices) {
    std::vector<PJRT_NamedValue> values;
    const auto add = [&](std::string_view name, PJRT_NamedValue_Type type) -> PJRT_NamedValue& {
      auto v = pjrt_args<PJRT_NamedValue>();
      v.name = name.data();
      v.name_size = name.size();
      v.type = type;
      v.value_size = 1;
      values.push_back(v);
      return values.back();
    };
    if (count_devices) add("cpu_device_count", PJRT_NamedValue_kInt64).int64_value = o.devices;
    for (const xla::plugin_option& each : o.plugin) {
      if (const auto* n = std::get_if<std::int64_t>(&each.value)) {
        add(each.name, PJRT_NamedValue_kInt64).int64_value = *n;
      } else if (const auto* x = std::get_if<float>(&each.value)) {
        add(each.name, PJRT_NamedValue_kFloat).float_value = *x;
      } else if (const auto* b = std::get_if<bool>(&each.value)) {
        add(each.name, PJRT_NamedValue_kBool).bool_value = *b;
      } else {
        const auto& s = std::get<std::string>(each.value);
        PJRT_NamedValue& v = add(each.name, PJRT_NamedValue_kString);
        v.string_value = s.data();
        v.value_size = s.size();
      }
    }
    auto c = pjrt_args<PJRT_Client_Create_Args>();
    if (o.group.processes > 1) {
      add("node_id", PJRT_NamedValue_kInt64).int64_value = o.group.peers.process;
      add("num_nodes", PJRT_NamedValue_kInt64).int64_value = o.group.processes;
      c.kv_get_user_arg = c.kv_put_user_arg = c.kv_try_get_user_arg = o.group.store.get();
      c.kv_get_callback = &use_store<PJRT_KeyValueGetCallback_Args>;
      c.kv_put_callback = &use_store<PJRT_KeyValuePutCallback_Args>;
      c.kv_try_get_callback = &use_store<PJRT_KeyValueTryGetCallback_Args>;
    }
    c.create_options = values.data();
    c.num_options = values.size();
    PJRT_Error* const failed = api().PJRT_Client_Create(&c);
    client_ = c.client;
    return failed;
  }

  std::shared_ptr<const pjrt_plugin> plugin_;
  PJRT_Client* client_ = nullptr;
  std::string platform_;
  std::vector<PJRT_Device*> devices_;
  std::unordered_set<PJRT_Device*> own_;
  process_group group_;
};

constexpr PJRT_Buffer_Type pjrt_type(dtype t) {
  constexpr PJRT_Buffer_Type types[] = {
      PJRT_Buffer_Type_F32, PJRT_Buffer_Type_F64, PJRT_Buffer_Type_BF16, PJRT_Buffer_Type_F16,
      PJRT_Buffer_Type_S8,  PJRT_Buffer_Type_S16, PJRT_Buffer_Type_S32,  PJRT_Buffer_Type_S64,
      PJRT_Buffer_Type_U8,  PJRT_Buffer_Type_U16, PJRT_Buffer_Type_U32,  PJRT_Buffer_Type_U64,
      PJRT_Buffer_Type_PRED};
  static_assert(std::size(types) == dtype_count);
  return types[static_cast<int>(t)];
}

/// An array on a device. Its memory is freed with the last owner, or when a run takes it over.
class device_buffer {
 public:
  device_buffer(std::shared_ptr<const pjrt_client> c, PJRT_Buffer* b)
      : client_(std::move(c)), buffer_(b) {}
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;
  ~device_buffer() {
    auto d = pjrt_args<PJRT_Buffer_Destroy_Args>();
    d.buffer = buffer_;
    client_->plugin().destroy(client_->api().PJRT_Buffer_Destroy(&d));
  }

  /// Copies a box of an array in host memory to a device. `whole` is the shape of the array,
  /// `begin` the first element of the box. The array may change afterwards.
  static std::shared_ptr<device_buffer> put(const std::shared_ptr<const pjrt_client>& c,
                                            PJRT_Device* device, PJRT_Memory* memory,
                                            const tensor_type& box, const std::byte* array,
                                            const shape& whole, const std::int64_t* begin,
                                            std::string_view name) {
    auto a = pjrt_args<PJRT_Client_BufferFromHostBuffer_Args>();
    std::int64_t strides[max_rank] = {}, stride = size_of(box.element), first = 0;
    for (int d = whole.rank; d-- > 0; stride *= whole[d]) {
      strides[d] = stride;
      first += begin == nullptr ? 0 : begin[d] * stride;
    }
    a.client = c->get();
    a.data = array + first;
    a.type = pjrt_type(box.element);
    a.dims = box.shape.extents;
    a.num_dims = static_cast<std::size_t>(box.shape.rank);
    if (box.shape != whole) {
      a.byte_strides = strides;
      a.num_byte_strides = a.num_dims;
    }
    a.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    a.device = device;
    a.memory = memory;
    c->need(c->api().PJRT_Client_BufferFromHostBuffer(&a), "E006", "\"", name,
            "\" is copied to a device");
    auto made = std::make_shared<device_buffer>(c, a.buffer);
    c->plugin().wait(a.done_with_host_buffer, "E006", "\"", name, "\" is copied to a device");
    return made;
  }
  /// Starts to copy the buffer to `to`; the caller waits for the event.
  PJRT_Event* get(std::byte* to, const tensor_type& t, std::string_view name) const {
    std::int64_t order[max_rank];
    for (int d = 0; d < t.shape.rank; ++d) order[d] = t.shape.rank - 1 - d;
    auto row_major = pjrt_args<PJRT_Buffer_MemoryLayout>();
    row_major.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    row_major.tiled = pjrt_args<PJRT_Buffer_MemoryLayout_Tiled>();
    row_major.tiled.minor_to_major = order;
    row_major.tiled.minor_to_major_size = static_cast<std::size_t>(t.shape.rank);
    auto a = pjrt_args<PJRT_Buffer_ToHostBuffer_Args>();
    a.src = there(name);
    a.host_layout = &row_major;
    a.dst = to;
    a.dst_size = static_cast<std::size_t>(t.bytes());
    client_->need(client_->api().PJRT_Buffer_ToHostBuffer(&a), "E006", "\"", name,
                  "\" is copied from a device");
    return a.event;
  }

  /// Starts to copy the buffer to another device.
  std::shared_ptr<device_buffer> copied_to(PJRT_Device* device, std::string_view name) const {
    auto a = pjrt_args<PJRT_Buffer_CopyToDevice_Args>();
    a.buffer = there(name);
    a.dst_device = device;
    client_->need(client_->api().PJRT_Buffer_CopyToDevice(&a), "E006", "\"", name,
                  "\" is copied to another device");
    return std::make_shared<device_buffer>(client_, a.dst_buffer);
  }

  const pjrt_client& client() const { return *client_; }
  /// To be called when a run takes over the memory.
  void donate() { donated_ = true; }
  /// Errors    E008 a run has taken over the memory
  PJRT_Buffer* there(std::string_view name) const {
    if (!donated_) return buffer_;
    throw error(concat("E008 xla: \"", name, "\" is gone: a run wrote a result into its memory; ",
                       "use the result, or set options::donate = false"));
  }

 private:
  std::shared_ptr<const pjrt_client> client_;
  PJRT_Buffer* buffer_;
  bool donated_ = false;
};

}  // namespace partita::backend_detail

namespace partita::xla {

/// The devices of a PJRT plugin: `xla::client gpus("/path/to/plugin.so", {.devices = 8})`.
///
/// Copies share the devices. Buffers and executables keep the client alive.
///
/// Errors    E001 the plugin cannot be loaded or has no client, E002 the file is not a PJRT plugin,
///           E003 the version of its API is not supported, E004 too few devices
class client {
 public:
  /// `plugin`: path of the shared library; empty: $PARTITA_PJRT_PLUGIN.
  explicit client(const std::string& plugin = {}, const client_options& o = {})
      : client_(std::make_shared<const backend_detail::pjrt_client>(plugin, o)) {}

  /// Number of devices, those of all processes.
  int devices() const { return static_cast<int>(client_->devices().size()); }
  /// "cpu", "cuda", "tpu", ...
  const std::string& platform() const { return client_->platform(); }
  /// The version of the plugin's C API, such as "0.81".
  std::string api_version() const {
    const PJRT_Api_Version& v = client_->api().pjrt_api_version;
    return std::to_string(v.major_version) + "." + std::to_string(v.minor_version);
  }
  const std::shared_ptr<const backend_detail::pjrt_client>& get() const { return client_; }

 private:
  std::shared_ptr<const backend_detail::pjrt_client> client_;
};

}  // namespace partita::xla
