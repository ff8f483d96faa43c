/// Devices of a PJRT plugin, and buffers on them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

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
};

}  // namespace partita::xla

namespace partita::backend_detail {

/// A client of a plugin, with its devices.
class pjrt_client {
 public:
  /// Errors    those of pjrt_plugin; E001 the plugin cannot make a client, E004 too few devices
  pjrt_client(const std::string& plugin, const xla::client_options& o)
      : plugin_(pjrt_plugin::load(plugin)) {
    auto created = create(o, o.devices > 0);
    // Only plugins whose number of devices is free know the option.
    if (created.error != nullptr && o.devices > 0) {
      plugin_->destroy(created.error);
      created = create(o, false);
    }
    need(created.error, "E001", "plugin \"", std::string_view(plugin_->path()), "\" has no client");
    client_ = created.client;
    auto name = pjrt_args<PJRT_Client_PlatformName_Args>();
    name.client = client_;
    need(api().PJRT_Client_PlatformName(&name), "E001", "the name of the platform");
    platform_.assign(name.platform_name, name.platform_name_size);
    auto list = pjrt_args<PJRT_Client_AddressableDevices_Args>();
    list.client = client_;
    need(api().PJRT_Client_AddressableDevices(&list), "E001", "the devices of the client");
    devices_.assign(list.addressable_devices,
                    list.addressable_devices + list.num_addressable_devices);
    if (o.devices > 0) need_devices(o.devices, "the client");
    if (o.devices > 0) devices_.resize(static_cast<std::size_t>(o.devices));
  }
  pjrt_client(const pjrt_client&) = delete;
  pjrt_client& operator=(const pjrt_client&) = delete;
  ~pjrt_client() {
    if (client_ == nullptr) return;
    auto d = pjrt_args<PJRT_Client_Destroy_Args>();
    d.client = client_;
    if (PJRT_Error* failed = api().PJRT_Client_Destroy(&d)) plugin_->destroy(failed);
  }

  const PJRT_Api& api() const { return plugin_->api(); }
  const pjrt_plugin& plugin() const { return *plugin_; }
  PJRT_Client* get() const { return client_; }
  const std::string& platform() const { return platform_; }
  const std::vector<PJRT_Device*>& devices() const { return devices_; }
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
  struct created_client {
    PJRT_Error* error;
    PJRT_Client* client;
  };
  created_client create(const xla::client_options& o, bool count_devices) const {
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
    c.create_options = values.data();
    c.num_options = values.size();
    PJRT_Error* const failed = api().PJRT_Client_Create(&c);
    return {failed, c.client};
  }

  std::shared_ptr<const pjrt_plugin> plugin_;
  PJRT_Client* client_ = nullptr;
  std::string platform_;
  std::vector<PJRT_Device*> devices_;
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
    if (PJRT_Error* failed = client_->api().PJRT_Buffer_Destroy(&d))
      client_->plugin().destroy(failed);
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
    need_there(name);
    std::int64_t order[max_rank];
    for (int d = 0; d < t.shape.rank; ++d) order[d] = t.shape.rank - 1 - d;
    auto row_major = pjrt_args<PJRT_Buffer_MemoryLayout>();
    row_major.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    row_major.tiled = pjrt_args<PJRT_Buffer_MemoryLayout_Tiled>();
    row_major.tiled.minor_to_major = order;
    row_major.tiled.minor_to_major_size = static_cast<std::size_t>(t.shape.rank);
    auto a = pjrt_args<PJRT_Buffer_ToHostBuffer_Args>();
    a.src = buffer_;
    a.host_layout = &row_major;
    a.dst = to;
    a.dst_size = static_cast<std::size_t>(t.bytes());
    client_->need(client_->api().PJRT_Buffer_ToHostBuffer(&a), "E006", "\"", name,
                  "\" is copied from a device");
    return a.event;
  }

  /// Starts to copy the buffer to another device.
  std::shared_ptr<device_buffer> copied_to(PJRT_Device* device, std::string_view name) const {
    need_there(name);
    auto a = pjrt_args<PJRT_Buffer_CopyToDevice_Args>();
    a.buffer = buffer_;
    a.dst_device = device;
    client_->need(client_->api().PJRT_Buffer_CopyToDevice(&a), "E006", "\"", name,
                  "\" is copied to another device");
    return std::make_shared<device_buffer>(client_, a.dst_buffer);
  }

  PJRT_Buffer* buffer() const { return buffer_; }
  const pjrt_client& client() const { return *client_; }
  /// To be called when a run takes over the memory.
  void donate() { donated_ = true; }
  /// Errors    E008 a run has taken over the memory
  void need_there(std::string_view name) const {
    if (donated_)
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
