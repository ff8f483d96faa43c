/// Files of the safetensors format: a JSON header, then the elements.
///
/// Source    https://huggingface.co/docs/safetensors, "Format"
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <partita/run/file/named_array.hpp>
#include <partita/run/file/safetensors_header.hpp>
#include <partita/run/file/whole_file.hpp>

namespace partita {

namespace run_detail {

constexpr std::string_view safetensors_type(dtype t) {
  constexpr std::string_view names[] = {"F32", "F64", "BF16", "F16", "I8",  "I16", "I32",
                                        "I64", "U8",  "U16",  "U32", "U64", "BOOL"};
  static_assert(std::size(names) == dtype_count);
  return names[static_cast<int>(t)];
}
/// Returns the type of an array; sets `e.refused` if it is not supported.
///
/// Errors    N001 the number of bytes does not match the shape
inline tensor_type type_of(tensor_entry& e, const byte_reader& in) {
  for (int t = 0; t < dtype_count; ++t) {
    const tensor_type type{static_cast<dtype>(t), e.shape};
    if (e.element != safetensors_type(type.element) || !e.refused.empty()) continue;
    const bool sized = e.begin <= e.end && e.shape.fits() &&
                       static_cast<std::uint64_t>(type.bytes()) == e.end - e.begin;
    if (!sized)
      in.fail("N001", "array \"", short_name(e.name), "\" is ", type,
              ", which does not match bytes ", e.begin, " to ", e.end);
    return type;
  }
  if (e.refused.empty())
    e.refused = concat("element type ", short_name(e.element), " is not supported");
  return {};
}
/// Checks that each byte of the data belongs to one tensor.
///
/// Errors    N001 tensors overlap or leave bytes, N002 the data ends too early
inline void need_cover(const std::vector<tensor_entry>& entries, std::uint64_t size,
                       const byte_reader& in) {
  std::vector<const tensor_entry*> order;
  for (const auto& e : entries) order.push_back(&e);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::uint64_t end = 0;
  const tensor_entry* before = nullptr;
  for (const auto* e : order) {
    if (e->begin < end)
      in.fail("N001", "array \"", short_name(e->name), "\" begins at byte ", e->begin,
              " of the data, but \"", short_name(before->name), "\" ends at byte ", end);
    if (e->begin > end)
      in.fail("N001", "bytes ", end, " to ", e->begin, " of the data belong to no array");
    end = e->end;
    before = e;
  }
  if (end > size)
    in.fail("N002", "its data has ", size, " bytes; \"", short_name(before->name),
            "\" ends at byte ", end, ": it is truncated");
  if (end < size) in.fail("N001", size - end, " bytes follow the last array");
}

/// Returns a string in JSON, such as `"a\nb"`.
inline text json_text(std::string_view s) {
  constexpr std::string_view digits = "0123456789abcdef";
  text out = "\"";
  for (const char c : s) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out << '\\' << c;
    else if (byte < 0x20)
      out << "\\u00" << digits[byte >> 4] << digits[byte & 15];
    else
      out << c;
  }
  return out << '"';
}
/// Returns a list in JSON, such as `[2,3]`.
template <class List>
text json_numbers(const List& list) {
  text out = "[";
  const char* comma = "";
  for (const auto n : list) out << comma << n, comma = ",";
  return out << ']';
}

struct named_type {
  std::string_view name;
  tensor_type type;
};
/// The bytes before the data of a safetensors file, and the position of each array in the file.
struct safetensors_plan {
  std::string head;
  std::vector<std::uint64_t> begin;
  std::uint64_t size = 0;  ///< of the file
};
/// Plans a file. The header names the arrays in their order. The data starts with those of wider
/// elements, so that each is aligned. `metadata` is the first member of the header, or empty.
///
/// Errors    N003 the format does not allow a name
inline safetensors_plan plan_safetensors(std::string_view path,
                                         const std::vector<named_type>& arrays,
                                         std::string_view metadata = {}) {
  std::vector<std::size_t> order;
  safetensors_plan plan;
  plan.begin.resize(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto x = size_of(arrays[a].type.element), y = size_of(arrays[b].type.element);
    return x != y ? x > y : a < b;
  });
  for (const std::size_t i : order) {
    plan.begin[i] = plan.size;
    plan.size += static_cast<std::uint64_t>(arrays[i].type.bytes());
  }
  text header = "{";
  header << metadata;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto& [name, type] = arrays[i];
    if (name == "__metadata__" || !is_utf8(name))
      throw error(concat("N003 file: \"", path, "\": an array cannot have the name \"",
                         short_name(name), "\""));
    const std::uint64_t begin = plan.begin[i], bytes = static_cast<std::uint64_t>(type.bytes());
    header << (i > 0 || !metadata.empty() ? "," : "") << json_text(name) << ":{\"dtype\":\""
           << safetensors_type(type.element) << "\",\"shape\":" << json_numbers(type.shape)
           << ",\"data_offsets\":[" << begin << ',' << begin + bytes << "]}";
  }
  header << '}';
  while (header.size() % 8 != 0) header << ' ';
  for (int i = 0; i < 8; ++i)
    plan.head += static_cast<char>(std::uint64_t{header.size()} >> (8 * i) & 0xff);
  plan.head += header.view();
  for (auto& begin : plan.begin) begin += plan.head.size();
  plan.size += plan.head.size();
  return plan;
}

}  // namespace run_detail

/// Reads the arrays of a safetensors file, in the order of its header. If `unread` is not null, it
/// receives the arrays with an unsupported element type or rank; otherwise the first of them is an
/// error.
///
/// Errors    N001 another format (the header is longer than the file or not readable; arrays
///           overlap, leave bytes, or have sizes that do not match their shapes), N002 the file is
///           truncated, N003 an element type or rank is not supported, N004 the file cannot be read
inline std::vector<named_array> read_safetensors(const std::string& path,
                                                 std::vector<unread_array>* unread = nullptr) {
  const std::string bytes = run_detail::read_file(path);
  run_detail::byte_reader in(bytes, path);
  if (in.left() < 8) in.fail("N001", "it is not a safetensors file: it has ", in.left(), " bytes");
  const std::uint64_t size = in.number(8);
  if (size > in.left())
    in.fail("N002", "its header needs ", size, " bytes, but ", in.left(),
            " are left: it is truncated, or not a safetensors file");
  auto entries = run_detail::safetensors_header(in.take(size), in).entries();
  const std::string_view data = in.take(in.left());
  std::vector<tensor_type> types;
  for (auto& e : entries) types.push_back(run_detail::type_of(e, in));
  run_detail::need_cover(entries, data.size(), in);
  std::vector<named_array> arrays;
  std::vector<unread_array> refused;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& e = entries[i];
    if (!e.refused.empty()) {
      const text message =
          concat("N003 file: \"", path, "\": array \"", short_name(e.name), "\": ", e.refused);
      refused.push_back({e.name, std::string(message.view())});
      continue;
    }
    const std::string_view mine = data.substr(e.begin, e.end - e.begin);
    arrays.push_back({e.name, run_detail::array_of_bytes(types[i], mine, in, e.name)});
  }
  run_detail::need_all_read(refused, unread);
  return arrays;
}

/// Writes arrays to a safetensors file. A failure leaves the old file unchanged.
///
/// Errors    N003 the format does not allow a name, N004 the file cannot be written
inline void write_safetensors(const std::string& path, const std::vector<named_array>& arrays) {
  std::vector<run_detail::named_type> types;
  for (const auto& [name, value] : arrays) types.push_back({name, value.type()});
  const auto plan = run_detail::plan_safetensors(path, types);
  std::string out = plan.head;
  out.resize(plan.size);
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (const auto n = static_cast<std::size_t>(arrays[i].value.type().bytes()); n > 0)
      std::memcpy(out.data() + plan.begin[i], arrays[i].value.bytes(), n);
  run_detail::write_file(path, out);
}

}  // namespace partita
