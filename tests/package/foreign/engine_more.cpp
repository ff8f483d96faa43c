#include "strategy.hpp"

partita::collectives counted_in_the_other_unit() { return pt::summarize(step()).collectives; }
