package jail

// WidenPipe has nothing to do: macOS sizes its pipes by itself.
func WidenPipe(int) {}
