// expect: S101 dot_general: contracted extents differ
// refused: the text is missing
#ifdef FAIL
static_assert(false, "S101 dot_general: contracted extents differ partita_error<");
static_assert(
    sizeof(int) == 1,
    "the compiler quotes this line: partita_error<S101 dot_general: contracted extents differ>");
#endif
