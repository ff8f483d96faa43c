/// NumPy's array files, `.npy` and `.npz`, as `numpy.save` and `numpy.savez` write them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <partita/run/file/byte_reader.hpp>
#include <partita/run/file/crc.hpp>
#include <partita/run/file/named_array.hpp>
#include <partita/run/file/whole_file.hpp>
#include <partita/support/scanner.hpp>

namespace partita {

namespace run_detail {

/// Returns NumPy's name of an element type. bf16, which NumPy lacks, is two bytes of raw data.
constexpr std::string_view npy_type(dtype t) {
  constexpr std::string_view names[] = {"<f4", "<f8", "|V2", "<f2", "|i1", "<i2", "<i4",
                                        "<i8", "|u1", "<u2", "<u4", "<u8", "|b1"};
  static_assert(std::size(names) == dtype_count);
  return names[static_cast<int>(t)];
}

/// Returns the value of a key in the header, a Python dictionary: "'<f4'", "False", "(2, 3)".
inline std::string_view npy_field(std::string_view header, std::string_view key,
                                  const byte_reader& in) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) in.fail("N001", "the header has no ", key);
  std::string_view rest = header.substr(header.find(':', at) + 1);
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  if (rest.starts_with("(")) return rest.substr(0, rest.find(')') + 1);
  return rest.substr(0, rest.find_first_of(",}"));
}
/// Parses an element type in the syntax of NumPy's `descr`, such as `'<f4'`.
///
/// Errors    N003 the element type is not supported
inline dtype npy_element(std::string_view descr, const byte_reader& in) {
  const std::string_view mine = descr.size() > 2 ? descr.substr(1, descr.size() - 2) : descr;
  for (int t = 0; t < dtype_count; ++t) {
    const std::string_view name = npy_type(static_cast<dtype>(t));
    // Byte order does not matter for single bytes and for raw data.
    if (mine == name || (mine.size() == 3 && name.size() == 3 && mine.substr(1) == name.substr(1) &&
                         (name[0] == '|' || mine[0] == '=')))
      return static_cast<dtype>(t);
  }
  in.fail("N003", "element type ", short_name(descr), " is not supported");
}
/// Parses a shape such as `(2, 3)`, `(2,)` or `()`.
///
/// Errors    N001 the text is not a shape, N003 its rank is too high
inline shape npy_shape(std::string_view tuple, const byte_reader& in) {
  scanner extents(tuple);
  shape s;
  std::uint64_t extent = 0;
  bool good = extents.accept("(");
  while (good && extents.natural(extent, INT64_MAX)) {
    if (s.rank == max_rank) in.fail("N003", "a rank above ", max_rank, " is not supported");
    s.push_back(static_cast<std::int64_t>(extent));
    extents.accept(",");
    extents.accept(" ");
  }
  if (!good || !extents.accept(")") || !s.fits())
    in.fail("N001", "its shape ", short_name(tuple), " is not that of an array");
  return s;
}
/// Converts an array from column-major order, in which the first dimension is contiguous.
inline array from_columns(const array& a) {
  const std::size_t size = static_cast<std::size_t>(size_of(a.element()));
  array out(a.type());
  std::int64_t at[max_rank] = {};
  std::byte* const to = out.mutable_bytes();
  for (std::int64_t k = 0; k < a.size(); ++k) {
    std::int64_t offset = 0;
    for (int d = 0; d < a.shape().rank; ++d) offset = offset * a.shape()[d] + at[d];
    std::memcpy(to + static_cast<std::size_t>(offset) * size,
                a.bytes() + static_cast<std::size_t>(k) * size, size);
    for (int d = 0; d < a.shape().rank && ++at[d] == a.shape()[d]; ++d) at[d] = 0;
  }
  return out;
}
/// Reads the bytes of one array.
///
/// Errors    those of read_npz
inline array read_npy(std::string_view bytes, std::string_view file) {
  byte_reader in(bytes, file);
  if (in.left() < 10 || in.take(6) != "\x93NUMPY") in.fail("N001", "it is not a NumPy array");
  const std::uint64_t version = in.number(2) & 0xff;
  if (version < 1 || version > 3)
    in.fail("N001", "version ", version, " of the NPY format; 1 to 3 are known");
  const std::string_view header = in.take(in.number(version == 1 ? 2 : 4));
  const tensor_type type{npy_element(npy_field(header, "'descr'", in), in),
                         npy_shape(npy_field(header, "'shape'", in), in)};
  const std::string_view order = npy_field(header, "'fortran_order'", in);
  if (order != "True" && order != "False")
    in.fail("N001", "'fortran_order' is ", short_name(order), ", not True or False");
  const std::string_view data = in.take(static_cast<std::uint64_t>(type.bytes()));
  if (in.left() > 0) in.fail("N001", in.left(), " bytes follow the ", data.size(), " of ", type);
  const array a = array_of_bytes(type, data, in, "");
  return order == "True" && type.shape.rank > 1 ? from_columns(a) : a;
}
inline std::string npy_bytes(const array& a) {
  text dict;
  dict << "{'descr': '" << npy_type(a.element()) << "', 'fortran_order': False, 'shape': (";
  for (int d = 0; d < a.shape().rank; ++d)
    dict << a.shape()[d] << ',' << (d + 1 < a.shape().rank ? " " : "");
  dict << "), }";
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  const std::size_t length = (10 + dict.size() + 1 + 63) / 64 * 64 - 10;
  out += static_cast<char>(length & 0xff);
  out += static_cast<char>(length >> 8);
  out += dict.view();
  out.append(length - dict.size() - 1, ' ');
  out += '\n';
  out.append(reinterpret_cast<const char*>(a.bytes()), static_cast<std::size_t>(a.type().bytes()));
  return out;
}

}  // namespace run_detail

/// Reads the arrays of an `.npz` file in the order of its directory, or the only array of an `.npy`
/// file, whose name is empty. If `unread` is not null, it receives the arrays with an unsupported
/// element type, rank or compression; otherwise the first of them is an error.
///
/// Errors    N001 the file has another format, N002 it is truncated or damaged, N003 an element
///           type, rank or compression is not supported, N004 the file cannot be read
/// Source    the NPY format, versions 1 to 3; APPNOTE.TXT of ZIP, with ZIP64
inline std::vector<named_array> read_npz(const std::string& path,
                                         std::vector<unread_array>* unread = nullptr) {
  const std::string bytes = run_detail::read_file(path);
  run_detail::byte_reader in(bytes, path);
  if (std::string_view(bytes).starts_with("\x93NUMPY"))
    return {{"", run_detail::read_npy(bytes, path)}};
  // The position of the directory is at the end of the file.
  const std::size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string::npos)
    in.fail("N001", "it is neither an .npz nor an .npy file, or it is truncated");
  in.go_to(end + 10);
  std::uint64_t count = in.number(2);
  in.number(4);
  std::uint64_t directory = in.number(4);
  if (count == 0xffff || directory == 0xffffffff) {
    const std::size_t wide = bytes.rfind(std::string_view("PK\x06\x06", 4));
    if (wide == std::string::npos) in.fail("N002", "its directory is missing");
    in.go_to(wide + 32);
    count = in.number(8);
    in.number(8);
    directory = in.number(8);
  }
  std::vector<named_array> arrays;
  std::vector<unread_array> refused;
  std::uint64_t all = 0;  // overlapping arrays could together exceed the memory
  in.go_to(directory);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (in.take(4) != std::string_view("PK\x01\x02", 4))
      in.fail("N001", "its directory is damaged");
    in.take(6);
    const std::uint64_t method = in.number(2);
    in.take(4);
    const auto crc = static_cast<std::uint32_t>(in.number(4));
    std::uint64_t size = in.number(4), whole = in.number(4);
    const std::uint64_t name_size = in.number(2), extra_size = in.number(2), comment = in.number(2);
    in.take(8);
    std::uint64_t at = in.number(4);
    std::string name(in.take(name_size));
    run_detail::byte_reader extra(in.take(extra_size), path);
    while (extra.left() >= 4) {
      const std::uint64_t kind = extra.number(2);
      run_detail::byte_reader field(extra.take(extra.number(2)), path);
      if (kind != 1) continue;
      for (std::uint64_t* each : {&whole, &size, &at})
        if (*each == 0xffffffff) *each = field.number(8);
    }
    in.take(comment);
    std::string key = name;
    if (key.ends_with(".npy")) key.resize(key.size() - 4);
    if (method != 0 || size != whole) {
      const text message =
          concat("N003 file: \"", path, "\": \"", name,
                 "\" is compressed; write it with numpy.savez, not savez_compressed");
      refused.push_back({std::move(key), std::string(message.view())});
      continue;
    }
    run_detail::byte_reader local(bytes, path);
    local.go_to(at);
    local.take(26);
    const std::uint64_t skip = local.number(2) + local.number(2);
    local.take(skip);
    const std::string_view data = local.take(size);
    if ((all += size) > bytes.size())
      in.fail("N001", "its arrays overlap: \"", name, "\" and another one");
    if (run_detail::crc32(data) != crc)
      in.fail("N002", "\"", name, "\" is damaged: its checksum differs");
    try {
      array a = run_detail::read_npy(data, path + ":" + name);
      arrays.push_back({std::move(key), std::move(a)});
    } catch (const error& e) {
      if (!std::string_view(e.what()).starts_with("N003")) throw;
      refused.push_back({std::move(key), e.what()});
    }
  }
  run_detail::need_all_read(refused, unread);
  return arrays;
}

/// Writes arrays as `numpy.savez` does, without compression. A failure leaves the old file
/// unchanged.
///
/// Errors    N003 more than 4 GiB, N004 the file cannot be written
inline void write_npz(const std::string& path, const std::vector<named_array>& arrays) {
  std::string out, directory;
  const auto put = [](std::string& to, std::uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(v >> (8 * i) & 0xff);
  };
  for (const auto& each : arrays) {
    const std::string name = each.name + ".npy", data = run_detail::npy_bytes(each.value);
    const std::size_t at = out.size();
    if (at + data.size() > 0xfffffffeu || arrays.size() > 0xfffe)
      throw error(concat("N003 file: \"", path, "\": more than 4 GiB or 65,534 arrays"));
    std::string common;
    put(common, 20, 2);          // required version
    put(common, 0x800, 2);       // names are UTF-8
    put(common, 0, 2);           // uncompressed
    put(common, 0x21 << 16, 4);  // 1980-01-01
    put(common, run_detail::crc32(data), 4);
    put(common, data.size(), 4);
    put(common, data.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    out += "PK\x03\x04" + common + name + data;
    directory += "PK\x01\x02";
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 2);
    put(directory, 0, 4);
    put(directory, 0, 4);
    put(directory, at, 4);
    directory += name;
  }
  const std::size_t at = out.size();
  out += directory;
  out += "PK\x05\x06";
  put(out, 0, 4);
  put(out, arrays.size(), 2);
  put(out, arrays.size(), 2);
  put(out, directory.size(), 4);
  put(out, at, 4);
  put(out, 0, 2);
  run_detail::write_file(path, out);
}

}  // namespace partita
