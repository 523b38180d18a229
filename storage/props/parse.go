package props

// Parse reads a property file. The only error that the format knows is a
// malformed \uXXXX escape; it names the line.
func Parse(text []byte) (*Properties, error) { panic("todo") }
