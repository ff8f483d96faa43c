/// rng_bit_generator: Philox 4x32 with 10 rounds, as elementwise arithmetic.
#pragma once

#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// Generates random bits from a state, ui64 (2): a key and a counter. Each counter gives four words
/// of 32 bits. The algorithm's counter has an upper half, which a state of this size lacks; the key
/// is used there. A 64-bit element consists of two words, lower first; a narrower one of the lower
/// bits of a word.
///
/// Source    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011); XLA's use of the
///           state on a CPU, where this generator is the default
class philox {
 public:
  constexpr philox(builder& b, value_id state) : b_(b) {
    const std::int64_t limits[] = {0, 1, 2};
    for (int i = 0; i < 2; ++i)
      given_[i] =
          ops::reshape(b, ops::slice(b, state, {limits + i, 1}, {limits + i + 1, 1}), shape{});
  }

  constexpr value_id bits(const tensor_type& to) {
    const int words = size_of(to.element) == 8 ? 2 : 1;
    const std::int64_t count = to.shape.elements();
    counters_ = (count * words + 3) / 4;
    make();
    // (The elements of one counter are contiguous.)
    const std::int64_t each = 4 / words;
    vec<value_id> columns;
    for (int i = 0; i < each; ++i)
      columns.push_back(ops::reshape(b_, element(words, i), shape{counters_, 1}));
    const value_id rows = ops::concatenate(b_, {columns.data(), columns.size()}, 1);
    const value_id flat = ops::reshape(b_, rows, shape{counters_ * each});
    const std::int64_t zero[] = {0}, end[] = {count};
    const value_id kept = ops::slice(b_, flat, zero, end);
    return ops::convert(b_, ops::reshape(b_, kept, to.shape), to.element);
  }
  /// The state after those bits.
  constexpr value_id next() {
    const value_id moved = ops::add(b_, given_[1], number(dtype::u64, counters_));
    const value_id parts[] = {ops::reshape(b_, given_[0], shape{1}),
                              ops::reshape(b_, moved, shape{1})};
    return ops::concatenate(b_, parts, 0);
  }

 private:
  builder& b_;
  value_id given_[2] = {};  // key and counter
  value_id words_[4] = {};
  std::int64_t counters_ = 0;

  constexpr value_id number(dtype t, std::int64_t n) { return ops::integer(b_, t, n); }
  constexpr value_id low(value_id v) {
    return ops::convert(b_, ops::logical_and(b_, v, number(dtype::u64, 0xffffffff)), dtype::u32);
  }
  constexpr value_id high(value_id v) {
    return ops::convert(b_, ops::shift_right_logical(b_, v, number(dtype::u64, 32)), dtype::u32);
  }
  constexpr value_id exclusive_or(value_id x, value_id y, value_id z) {
    return ops::logical_xor(b_, ops::logical_xor(b_, x, y), z);
  }
  /// Computes the words of all counters.
  constexpr void make() {
    const tensor_type places{dtype::u64, shape{counters_}};
    const value_id lower = ops::add(b_, ops::iota(b_, places, 0), given_[1]);
    const value_id carry =
        ops::convert(b_, ops::compare(b_, ops::direction::lt, lower, given_[1]), dtype::u64);
    const value_id upper = ops::add(b_, carry, given_[0]);
    value_id key[] = {low(given_[0]), high(given_[0])};
    words_[0] = low(lower), words_[1] = high(lower);
    words_[2] = low(upper), words_[3] = high(upper);
    for (int i = 0; i < 10; ++i) {
      round(key);
      key[0] = ops::add(b_, key[0], number(dtype::u32, 0x9e3779b9));
      key[1] = ops::add(b_, key[1], number(dtype::u32, 0xbb67ae85));
    }
  }
  constexpr void round(const value_id (&key)[2]) {
    const auto product = [&](value_id word, std::int64_t by) {
      return ops::multiply(b_, ops::convert(b_, word, dtype::u64), number(dtype::u64, by));
    };
    const value_id first = product(words_[0], 0xd2511f53), second = product(words_[2], 0xcd9e8d57);
    words_[0] = exclusive_or(high(second), words_[1], key[0]);
    words_[2] = exclusive_or(high(first), words_[3], key[1]);
    words_[1] = low(second);
    words_[3] = low(first);
  }
  constexpr value_id element(int words, int i) {
    if (words == 1) return words_[i];
    const value_id upper = ops::shift_left(b_, ops::convert(b_, words_[2 * i + 1], dtype::u64),
                                           number(dtype::u64, 32));
    return ops::logical_or(b_, ops::convert(b_, words_[2 * i], dtype::u64), upper);
  }
};

/// Reads rng_bit_generator, whose results are the next state and the bits.
constexpr void read_rng_bit_generator(op_context& c) {
  std::string_view algorithm =
      c.o.attribute(c.o.has("rng_algorithm") ? "rng_algorithm" : "algorithm");
  for (std::string_view known : {"DEFAULT", "PHILOX"})
    if (algorithm.find(known) != std::string_view::npos) algorithm = known;
  const tensor_type to = c.declared(1);
  if (!c.count(1)) return;
  if (algorithm != "DEFAULT" && algorithm != "PHILOX")
    return c.fail("H013", "algorithm ", algorithm.substr(0, 40),
                  "; DEFAULT and PHILOX are "
                  "supported (keys of jax.random.key(seed) do not need them)");
  if (c.type(0) != tensor_type{dtype::u64, shape{2}})
    return c.fail("H013", "a state of type ", c.type(0), "; tensor<2xui64> is supported");
  if (is_floating(to.element) || to.element == dtype::boolean)
    return c.fail("H013", "bits as ", to, "; integers are supported");
  philox p(c.b, c.x(0));
  const value_id bits = p.bits(to);
  c.give(p.next());
  c.give(bits);
}

}  // namespace partita::stablehlo_detail
