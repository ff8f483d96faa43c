// refused: no line
