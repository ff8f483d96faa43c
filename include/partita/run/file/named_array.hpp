/// Arrays as files store them.
#pragma once

#include <string>
#include <vector>

#include <partita/run/array.hpp>
#include <partita/run/file/byte_reader.hpp>

namespace partita {

/// An array and its name.
struct named_array {
  std::string name;
  array value;
};

/// An array of a file that this library cannot represent, because its element type or rank is not
/// supported.
struct unread_array {
  std::string name, message;  ///< the message of the error N003
};

namespace run_detail {

/// Throws the reason for the first array that could not be read, unless the caller wants the list.
inline void need_all_read(const std::vector<unread_array>& unread,
                          std::vector<unread_array>* wanted) {
  if (wanted != nullptr)
    *wanted = unread;
  else if (!unread.empty())
    throw error(unread.front().message);
}

/// Makes an array of its bytes in a file.
///
/// Errors    N001 a bool is neither 0 nor 1
inline array array_of_bytes(const tensor_type& type, std::string_view bytes, const byte_reader& in,
                            std::string_view name) {
  if (type.element == dtype::boolean)
    for (const char c : bytes)
      if (c != 0 && c != 1)
        in.fail("N001", name.empty() ? "" : "array \"", name,
                name.empty() ? "" : "\": ", "a bool is ", int{static_cast<unsigned char>(c)},
                ", neither 0 nor 1");
  array a(type);
  if (!bytes.empty()) std::memcpy(a.mutable_bytes(), bytes.data(), bytes.size());
  return a;
}

}  // namespace run_detail
}  // namespace partita
