package symbol

import "strings"

// maxScopes bounds the parts of a decorated name.
const maxScopes = 32

// undecorate returns the qualified name of a function in C++ that Microsoft's compiler has decorated,
// without parameters. Names that it cannot read, such as those of templates and operators, are returned
// as they are.
// Source: LLVM, MicrosoftDemangle.cpp.
func undecorate(name string) string {
	rest, ok := strings.CutPrefix(name, "?")
	if !ok || len(name) > maxMangled {
		return name
	}
	special := ""
	if strings.HasPrefix(rest, "?0") || strings.HasPrefix(rest, "?1") {
		special, rest = rest[1:2], rest[2:]
	}
	var parts, seen []string // the innermost first; names that digits stand for
	for len(parts) < maxScopes {
		part := ""
		switch {
		case rest == "":
			return name
		case rest[0] == '@':
			return qualified(parts, special, name)
		case rest[0] >= '0' && rest[0] <= '9':
			if int(rest[0]-'0') >= len(seen) {
				return name
			}
			part, rest = seen[rest[0]-'0'], rest[1:]
		case strings.HasPrefix(rest, "?A"):
			if part, rest, ok = strings.Cut(rest, "@"); !ok {
				return name
			}
			seen, part = append(seen, part), "`anonymous namespace'"
		default:
			if part, rest, ok = strings.Cut(rest, "@"); !ok || part[0] == '?' {
				return name
			}
			seen = append(seen, part)
		}
		parts = append(parts, part)
	}
	return name
}

// qualified joins the parts of a name. special is 0 for a constructor, 1 for a destructor.
func qualified(parts []string, special, name string) string {
	if len(parts) == 0 {
		return name
	}
	switch special {
	case "0":
		parts = append([]string{parts[0]}, parts...)
	case "1":
		parts = append([]string{"~" + parts[0]}, parts...)
	}
	out := parts[len(parts)-1]
	for i := len(parts) - 2; i >= 0; i-- {
		out += "::" + parts[i]
	}
	return out
}
