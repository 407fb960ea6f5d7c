package symbol

import "github.com/ianlancetaylor/demangle"

// Limits on what the demangler is given and gives: its output can be
// exponential in its input.
const (
	maxMangled   = 1 << 13
	maxDemangled = 12 // a power of two
)

// Demangle makes C++, Rust and D names readable, without parameters; others,
// and those too long to be worth it, come back as they are.
func Demangle(name string) string {
	if len(name) > maxMangled {
		return name
	}
	return demangle.Filter(name, demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(maxDemangled))
}
