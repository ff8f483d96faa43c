// expect: P024 input: the type is a params, whose members are not declared; declare them with
// expect: BOOST_HANA_DEFINE_STRUCT(params, (type, member), ...)
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

#ifdef FAIL
struct params {
  pt::tensor<float, 8> scale;
};
#else
struct params {
  BOOST_HANA_DEFINE_STRUCT(params, (pt::tensor<float, 8>, scale));
};
#endif
constexpr auto model = [](auto x, auto p) { return x * p.scale; };
constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 16, 8>("x"), pt::input<params>("params")),
                       {{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.total() == 0);
