package symbol

import "github.com/ianlancetaylor/demangle"

// Limits on the demangler's input and output: its output can be exponential in its input.
const (
	maxMangled   = 1 << 13
	maxDemangled = 12 // a power of two
)

// Demangle returns readable C++, Rust, and D names, without parameters. Other names, and very long ones, are
// unchanged.
func Demangle(name string) string {
	if len(name) > maxMangled {
		return name
	}
	return demangle.Filter(name, demangle.NoParams, demangle.NoEnclosingParams,
		demangle.MaxLength(maxDemangled))
}
