package hang

import "fmt"

// Fold returns the names of a chain with equal neighbors shown once, as in "App.Walk (200 times)".
func Fold(names []string) (out []string) {
	for i := 0; i < len(names); {
		same := i + 1
		for same < len(names) && names[same] == names[i] {
			same++
		}
		name := names[i]
		if n := same - i; n > 1 {
			name = fmt.Sprintf("%s (%d times)", name, n)
		}
		out, i = append(out, name), same
	}
	return out
}
