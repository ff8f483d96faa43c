/// The cases of the reference data (reference_data.py defines their format).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

namespace reference_data {

namespace pt = partita;

/// One case: the operands of an op or a model, the expected results, and the permitted error.
struct reference {
  std::string where, op, note;  ///< where: file:line
  std::vector<std::int64_t> attrs;
  std::vector<pt::array> operands, results;
  double ulp = 0, absolute = 0;
  bool bounded = false;  ///< the line `bound` was there
};

inline pt::dtype dtype_of_name(std::string_view name) {
  for (int t = 0; t < pt::dtype_count; ++t)
    if (pt::name_of(static_cast<pt::dtype>(t)) == name) return static_cast<pt::dtype>(t);
  throw std::runtime_error("unknown element type " + std::string(name));
}

template <class T>
T element(const std::string& word) {
  const char* begin = word.c_str();
  char* end = nullptr;
  T value{};
  if constexpr (std::is_same_v<T, std::uint64_t>)
    value = std::strtoull(begin, &end, 10);
  else if constexpr (std::is_integral_v<T>)
    value = static_cast<T>(std::strtoll(begin, &end, 10));
  else if constexpr (std::is_same_v<T, double>)
    value = std::strtod(begin, &end);
  else  // the text is the exact value, so it fits in binary32
    value = T(std::strtof(begin, &end));
  if (end == begin || *end != '\0') throw std::runtime_error("not a number: " + word);
  return value;
}

/// `f32[2, 3] 1 2 3 4 5 6`
inline pt::array read_array(const std::string& line) {
  const auto open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos)
    throw std::runtime_error("no type: " + line);
  pt::tensor_type type{dtype_of_name(line.substr(0, open)), {}};
  std::istringstream extents(line.substr(open + 1, close - open - 1));
  for (std::string word; std::getline(extents, word, ',');)
    type.shape.push_back(std::atoll(word.c_str()));
  pt::array a(type);
  std::istringstream values(line.substr(close + 1));
  pt::run_detail::with_type(type.element, [&]<class T>(std::type_identity<T>) {
    T* to = a.mutable_data<T>();
    std::string word;
    for (std::int64_t i = 0; i < a.size(); ++i) {
      if (!(values >> word)) throw std::runtime_error("too few values");
      to[i] = element<T>(word);
    }
    if (values >> word) throw std::runtime_error("too many values");
  });
  return a;
}

inline void read_line(const std::string& key, const std::string& rest, reference& c) {
  std::istringstream words(rest);
  if (key == "attrs") {
    for (std::int64_t v; words >> v;) c.attrs.push_back(v);
    if (!words.eof()) throw std::runtime_error("attributes are integers");
  } else if (key == "operand") {
    c.operands.push_back(read_array(rest));
  } else if (key == "result") {
    c.results.push_back(read_array(rest));
  } else if (key == "bound") {
    c.bounded = true;
    for (std::string word; words >> word;) {
      if (word.rfind("ulp=", 0) == 0) c.ulp = element<double>(word.substr(4));
      if (word.rfind("abs=", 0) == 0) c.absolute = element<double>(word.substr(4));
    }
    if ((c.ulp == 0 && c.absolute == 0) != (rest == "exact"))
      throw std::runtime_error("a bound is exact or has ulp= or abs=");
  } else {
    throw std::runtime_error("unknown key " + key);
  }
}

inline void read_file(const std::filesystem::path& path, std::vector<reference>& list) {
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string where = path.filename().string() + ":" + std::to_string(++number);
    if (line.empty() || line[0] == '#') continue;
    const auto space = std::min(line.find(' '), line.size());
    const std::string key = line.substr(0, space);
    const std::string rest = line.substr(std::min(space + 1, line.size()));
    try {
      if (key == "case") {
        const auto end = std::min(rest.find(' '), rest.size());
        list.push_back({where, rest.substr(0, end), rest.substr(end), {}, {}, {}, 0, 0, false});
      } else if (list.empty()) {
        throw std::runtime_error("no case yet");
      } else {
        read_line(key, rest, list.back());
      }
    } catch (const std::exception& e) {
      throw std::runtime_error(where + ": " + e.what());
    }
  }
}

}  // namespace reference_data
