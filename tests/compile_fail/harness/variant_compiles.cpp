// expect: S101 dot_general: contracted extents differ
// refused: the variant compiles
