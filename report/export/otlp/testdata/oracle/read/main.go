// Read checks OpenTelemetry profiles and prints them as text, through the types that
// OpenTelemetry publishes. It reads the standard input. -json says in which form it is, and
// -strict says that every entry of a table must be used, as a sender should do.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func main() {
	json := flag.Bool("json", false, "")
	strict := flag.Bool("strict", false, "")
	flag.Parse()
	data, err := io.ReadAll(os.Stdin)
	if err == nil {
		var p pprofile.Profiles
		if *json {
			p, err = (&pprofile.JSONUnmarshaler{DisallowUnknownFields: true}).UnmarshalProfiles(data)
		} else {
			p, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		}
		if err == nil {
			err = show(p, *strict)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// reader marks the entries of tables that are used.
type reader struct {
	pprofile.ProfilesDictionary
	used [6]map[int32]bool
}

const (
	tableMapping = iota
	tableLocation
	tableFunction
	tableString
	tableAttribute
	tableStack
)

func show(p pprofile.Profiles, strict bool) error {
	r := &reader{ProfilesDictionary: p.Dictionary()}
	for i := range r.used {
		r.used[i] = map[int32]bool{0: true}
	}
	for _, rp := range p.ResourceProfiles().All() {
		fmt.Println("resource", plain(rp.Resource().Attributes()))
		for _, sp := range rp.ScopeProfiles().All() {
			fmt.Println("scope", sp.Scope().Name())
			for _, pr := range sp.Profiles().All() {
				r.profile(pr)
			}
		}
	}
	if !strict {
		return nil
	}
	return r.check()
}

func plain(m pcommon.Map) string {
	var out []string
	for k, v := range m.All() {
		out = append(out, fmt.Sprintf("%s=%q", k, v.AsString()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (r *reader) profile(p pprofile.Profile) {
	t := p.SampleType()
	fmt.Printf("profile %s %s %d %d %s\n", r.string(t.TypeStrindex()), r.string(t.UnitStrindex()), p.Time(), p.DurationNano(), r.attributes(p.AttributeIndices()))
	period := p.PeriodType()
	r.string(period.TypeStrindex())
	r.string(period.UnitStrindex())
	if p.ProfileID().IsEmpty() {
		fmt.Println("no id")
	}
	for _, s := range p.Samples().All() {
		if n := s.TimestampsUnixNano().Len(); n > 0 && n != s.Values().Len() {
			fmt.Println("as many times as values must be", n, s.Values().Len())
		}
		fmt.Printf("sample %v %v | %s | %s\n", s.Values().AsRaw(), s.TimestampsUnixNano().AsRaw(), r.attributes(s.AttributeIndices()), r.stack(s.StackIndex()))
	}
}

func (r *reader) string(i int32) string {
	r.used[tableString][i] = true
	return r.StringTable().At(int(i))
}

func (r *reader) attributes(of pcommon.Int32Slice) string {
	var out []string
	for _, i := range of.AsRaw() {
		r.used[tableAttribute][i] = true
		a := r.AttributeTable().At(int(i))
		out = append(out, fmt.Sprintf("%s=%q", r.string(a.KeyStrindex()), a.Value().AsString()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (r *reader) stack(i int32) string {
	r.used[tableStack][i] = true
	var out []string
	for _, i := range r.StackTable().At(int(i)).LocationIndices().AsRaw() {
		r.used[tableLocation][i] = true
		l := r.LocationTable().At(int(i))
		text := fmt.Sprintf("%#x", l.Address())
		for _, line := range l.Lines().All() {
			r.used[tableFunction][line.FunctionIndex()] = true
			f := r.FunctionTable().At(int(line.FunctionIndex()))
			r.string(f.SystemNameStrindex())
			text += fmt.Sprintf(" %q %q:%d", r.string(f.NameStrindex()), r.string(f.FilenameStrindex()), line.Line())
		}
		if n := l.MappingIndex(); n != 0 {
			r.used[tableMapping][n] = true
			m := r.MappingTable().At(int(n))
			text += fmt.Sprintf(" in %q %#x-%#x+%#x %s", r.string(m.FilenameStrindex()), m.MemoryStart(), m.MemoryLimit(), m.FileOffset(), r.attributes(m.AttributeIndices()))
		}
		out = append(out, text+" "+r.attributes(l.AttributeIndices()))
	}
	return strings.Join(out, "; ")
}

// check checks what the format says of every dictionary: first a zero value, no entry that
// nothing uses, no entry twice.
func (r *reader) check() error {
	for i, n := range []int{r.MappingTable().Len(), r.LocationTable().Len(), r.FunctionTable().Len(), r.StringTable().Len(), r.AttributeTable().Len(), r.StackTable().Len()} {
		if n == 0 || n != len(r.used[i]) {
			return fmt.Errorf("table %d has %d entries, %d are used", i, n, len(r.used[i]))
		}
	}
	if r.LinkTable().Len() != 1 || r.StringTable().At(0) != "" || r.StackTable().At(0).LocationIndices().Len() != 0 || r.LocationTable().At(0).Lines().Len() != 0 ||
		r.MappingTable().At(0).MemoryLimit() != 0 || r.FunctionTable().At(0).NameStrindex() != 0 || r.AttributeTable().At(0).KeyStrindex() != 0 {
		return fmt.Errorf("a first entry is not zero")
	}
	seen := map[string]bool{}
	for _, s := range r.StringTable().All() {
		if seen[s] {
			return fmt.Errorf("%q is there twice", s)
		}
		seen[s] = true
	}
	for i := range r.StackTable().Len() {
		key := fmt.Sprint(r.StackTable().At(i).LocationIndices().AsRaw())
		if seen[key] {
			return fmt.Errorf("stack %s is there twice", key)
		}
		seen[key] = true
	}
	return nil
}
