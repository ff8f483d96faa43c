// write_checkpoint FROM TO zarr|safetensors writes the arrays of a file as a checkpoint, sharded
// with padding, and reads them back.
#include <cstring>
#include <iostream>

#include <partita/checkpoint.hpp>
#include <partita/cpu.hpp>
#include <partita/files.hpp>

namespace pt = partita;

int main(int count, char** words) {
  if (count != 4) return 2;
  try {
    const pt::results all = pt::load(words[1]);
    const pt::mesh m{{"a", 3}, {"b", 2}, {"c", 2}};
    std::vector<pt::checkpoint_array> arrays;
    for (int i = 0; i < all.size(); ++i) {
      const pt::tensor_type& t = all[i].type();
      pt::sharded_value v{std::string_view(all.names()[static_cast<std::size_t>(i)]),
                          t.element,
                          t.shape,
                          t.shape,
                          {}};
      for (int d = 0; d < t.shape.rank && d < 2; ++d) {
        v.sharding.push_back(d, d);
        v.local_shape[d] = (t.shape[d] + m.size(d) - 1) / m.size(d);
      }
      arrays.push_back({v, {}});
      for (std::int64_t d = 0; d < m.devices(); ++d)
        arrays.back().shards.push_back({d, pt::piece(all[i], v, m, d)});
    }
    const bool zarr = std::string_view(words[3]) == "zarr";
    pt::save_checkpoint(
        words[2], m, arrays,
        {.step = 100,
         .format = zarr ? pt::checkpoint_format::zarr : pt::checkpoint_format::safetensors,
         .file_bytes = 1000});
    const pt::checkpoint_reader in(words[2]);
    for (int i = 0; i < all.size(); ++i) {
      const pt::array& a = all[i];
      const pt::array back = in.read(all.names()[static_cast<std::size_t>(i)], {}, a.type().shape);
      if (back.type() != a.type() ||
          std::memcmp(back.bytes(), a.bytes(), static_cast<std::size_t>(a.type().bytes())) != 0)
        throw pt::error("an array comes back as another one");
    }
  } catch (const pt::error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
