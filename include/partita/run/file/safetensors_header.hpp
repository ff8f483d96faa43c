/// The header of a safetensors file, which is untrusted input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <partita/ir/shape.hpp>
#include <partita/run/file/json_reader.hpp>

namespace partita::run_detail {

/// The header's entry for a tensor.
struct tensor_entry {
  std::string name, element;
  partita::shape shape;
  text refused;                      ///< the reason why it is not supported, or empty
  std::uint64_t begin = 0, end = 0;  ///< bytes of the data
};

/// Reads `{"w": {"dtype": "F32", "shape": [8, 16], "data_offsets": [0, 512]}, ...}`, which is JSON
/// (RFC 8259). Other members of a tensor may have any value; they are skipped.
///
/// Errors    N001 the text has another form, or values are nested more than 120 deep
class safetensors_header {
 public:
  safetensors_header(std::string_view header, const byte_reader& in)
      : json_(header, in, "N001", "its header is not a safetensors header") {}

  /// Returns the entries in the order of the header; "__metadata__" is checked and left out.
  std::vector<tensor_entry> entries() {
    std::vector<tensor_entry> list;
    bool described = false;
    json_.object([&](const std::string& name) {
      if (name != "__metadata__") {
        list.push_back(entry(name));
        return;
      }
      if (described) json_.fail("__metadata__ occurs twice");
      described = true;
      if (!json_.accept("null")) json_.object([&](const std::string&) { json_.string(); });
    });
    json_.need_end();
    return list;
  }

 private:
  json_reader json_;

  tensor_entry entry(const std::string& name) {
    tensor_entry e;
    e.name = name;
    int seen = 0;  // each member once
    const auto once = [&](int bit) {
      if ((seen & bit) != 0) json_.fail("a member occurs twice");
      seen |= bit;
    };
    json_.object([&](const std::string& member) {
      if (member == "dtype") {
        once(1);
        e.element = json_.string();
      } else if (member == "shape") {
        once(2);
        extents(e);
      } else if (member == "data_offsets") {
        once(4);
        offsets(e);
      } else {
        json_.skip_value();
      }
    });
    if (seen != 7)
      json_.fail(concat("\"", short_name(name), "\" lacks ",
                        (seen & 1) == 0   ? "dtype"
                        : (seen & 2) == 0 ? "shape"
                                          : "data_offsets"));
    return e;
  }
  void extents(tensor_entry& e) {
    json_.list("[", "]", [&] {
      const auto extent = static_cast<std::int64_t>(json_.number());
      if (e.shape.rank < max_rank)
        e.shape.push_back(extent);
      else
        e.refused = concat("a rank above ", max_rank, " is not supported");
    });
  }
  void offsets(tensor_entry& e) {
    int count = 0;
    json_.list("[", "]", [&] {
      const std::uint64_t n = json_.number();
      (count == 0 ? e.begin : e.end) = n;
      ++count;
    });
    if (count != 2) json_.fail("data_offsets are two numbers");
  }
};

}  // namespace partita::run_detail
