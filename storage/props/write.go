package props

// Append adds the properties to out in the form java.util.Properties.store
// uses: one key=value a line, separators, control characters and everything
// beyond ASCII escaped. Each comment becomes a line that starts with '#'.
func (p *Properties) Append(out []byte, comments ...string) []byte { panic("todo") }
