/// PJRT plugins: shared libraries that compile and run StableHLO (XLA for CPUs, GPUs, TPUs).
///
/// Source    the PJRT C API, pjrt_c_api.h of OpenXLA
#pragma once

#if !__has_include(<pjrt_c_api.h>)
#error \
    "partita/xla.hpp needs pjrt_c_api.h; the wheel xla-cpu-pjrt has it: set PARTITA_PJRT_INCLUDE to its include folder"
#endif
#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <partita/support/error.hpp>

namespace partita::backend_detail {

/// Arguments of a function of the API, all zero, with their size.
template <class Args>
Args pjrt_args() {
  Args a{};
  a.struct_size = sizeof(Args);
  return a;
}

/// A loaded plugin. It is never unloaded: plugins keep threads and other state until the process
/// ends.
class pjrt_plugin {
 public:
  /// Oldest minor version of the API that is accepted, with major version 0.
  static constexpr int oldest = 81;

  /// Returns the plugin of a file, or of $PARTITA_PJRT_PLUGIN if `path` is empty; loads it once.
  ///
  /// Errors    E001 no file is named or it cannot be loaded, E002 it is not a PJRT plugin, E003 the
  ///           version of its API is not supported
  static std::shared_ptr<const pjrt_plugin> load(std::string path) {
    if (path.empty())
      if (const char* set = std::getenv("PARTITA_PJRT_PLUGIN")) path = set;
    if (path.empty())
      throw error(concat("E001 xla: no plugin is named; pass its path to xla::client or set ",
                         "PARTITA_PJRT_PLUGIN"));
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const pjrt_plugin>> loaded;
    const std::lock_guard lock(mutex);
    auto& found = loaded[path];
    if (found == nullptr) found.reset(new pjrt_plugin(path));
    return found;
  }

  const PJRT_Api& api() const { return *api_; }
  const std::string& path() const { return path_; }
  /// Throws if a call failed. `what` names the work that was done.
  ///
  /// Errors    `code`, or E007 if the device has not enough memory, with the text of the plugin
  template <class... What>
  void need(PJRT_Error* failed, std::string_view code, const What&... what) const {
    if (failed == nullptr) return;
    auto text_of = pjrt_args<PJRT_Error_Message_Args>();
    text_of.error = failed;
    api_->PJRT_Error_Message(&text_of);
    const std::string reason(text_of.message, text_of.message_size);
    auto kind = pjrt_args<PJRT_Error_GetCode_Args>();
    kind.error = failed;
    destroy(api_->PJRT_Error_GetCode(&kind));
    destroy(failed);
    if (kind.code == PJRT_Error_Code_RESOURCE_EXHAUSTED) code = "E007";
    throw error(concat(code, " xla: ", what..., ": ", std::string_view(reason)));
  }
  /// Waits for an event and destroys it; null is an event that has happened.
  template <class... What>
  void wait(PJRT_Event* event, std::string_view code, const What&... what) const {
    need(awaited(event), code, what...);
  }
  /// Does so, and returns the error of the work.
  PJRT_Error* awaited(PJRT_Event* event) const {
    if (event == nullptr) return nullptr;
    auto a = pjrt_args<PJRT_Event_Await_Args>();
    a.event = event;
    PJRT_Error* const failed = api_->PJRT_Event_Await(&a);
    auto d = pjrt_args<PJRT_Event_Destroy_Args>();
    d.event = event;
    destroy(api_->PJRT_Event_Destroy(&d));
    return failed;
  }
  void destroy(PJRT_Error* e) const {
    if (e == nullptr) return;
    auto d = pjrt_args<PJRT_Error_Destroy_Args>();
    d.error = e;
    api_->PJRT_Error_Destroy(&d);
  }

 private:
  explicit pjrt_plugin(std::string path) : path_(std::move(path)) {
    void* library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = dlerror();
      throw error(concat("E001 xla: plugin \"", std::string_view(path_), "\" cannot be loaded: ",
                         std::string_view(reason == nullptr ? "no reason is known" : reason)));
    }
    void* symbol = dlsym(library, "GetPjrtApi");
    const PJRT_Api* api =
        symbol == nullptr ? nullptr : reinterpret_cast<const PJRT_Api* (*)()>(symbol)();
    if (api == nullptr) {
      dlclose(library);
      throw error(concat("E002 xla: \"", std::string_view(path_),
                         "\" is not a PJRT plugin: it has no function GetPjrtApi"));
    }
    const PJRT_Api_Version& v = api->pjrt_api_version;
    // Older plugins were not tried.
    if (v.major_version != PJRT_API_MAJOR || v.minor_version < oldest)
      throw error(concat("E003 xla: plugin \"", std::string_view(path_), "\" has version ",
                         v.major_version, '.', v.minor_version, " of the PJRT C API; ",
                         PJRT_API_MAJOR, '.', oldest, " or a later ", PJRT_API_MAJOR,
                         ".x is needed (this program was compiled with ", PJRT_API_MAJOR, '.',
                         PJRT_API_MINOR, ")"));
    api_ = api;
    auto start = pjrt_args<PJRT_Plugin_Initialize_Args>();
    need(api_->PJRT_Plugin_Initialize(&start), "E001", "plugin \"", std::string_view(path_),
         "\" does not start");
  }

  std::string path_;
  const PJRT_Api* api_ = nullptr;
};

}  // namespace partita::backend_detail
