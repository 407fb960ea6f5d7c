package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// namesWanted are methods of Names.cs that differ only in their parameters or type arguments, and class
// library methods that call them.
var namesWanted = []string{
	"Names.Over()", "Names.Over(int)", "Names.Over(ref string, long[,], List<Dictionary<string,int?>>[])",
	"Names.Own<int>(T)", "Names.Own<T>(T)", "Names.Own<double,U>(T, U)",
	"Names.Box<int>.Put", "Names.Box<T>.Put", "Names.Box<byte>.Inner<long>.Run", "Names.Box<T>.Both<int>", "Names.Box<KeyValuePair<T1,int>>.Put",
	"Names.Key.CompareTo", "Names.Spin",
	"System.Array.Sort<Names.Key>(T[])",
	"System.Collections.Generic.List<Names.Key>.Sort()", "System.Collections.Generic.List<Names.Key>.Sort(int, int, IComparer<T>)",
	"System.Collections.Generic.GenericArraySortHelper<Names.Key>.Sort",
}

// Methods have names that distinguish them, in every way of sampling.
func TestNames(t *testing.T) {
	exe, seen := compiled(t, "profiler/testdata/Names.cs"), map[string]string{}
	for _, way := range []string{"probe", "snapshot"} {
		t.Run(way, func(t *testing.T) {
			r := recordRaw(t, "--rate 99 --mode "+way, need(t, "out", "bin", "swhost"), runtime9(t), exe, "3")
			r.well(t, 0, "NAMES DONE\n")
			got := slices.Sorted(maps.Values(r.names))
			for _, name := range namesWanted {
				if !slices.Contains(got, name) {
					t.Errorf("no method %s", name)
				}
			}
			oneNameEach(t, seen, got)
			if t.Failed() {
				for _, name := range got {
					if strings.Contains(name, "Names") {
						t.Log(name)
					}
				}
			}
		})
	}
}

// oneNameEach fails if a method has parameters in one recording and none in another, or a name with the
// runtime's own word for shared type arguments.
func oneNameEach(t *testing.T, seen map[string]string, names []string) {
	for _, name := range names {
		if strings.Contains(name, "__Canon") {
			t.Errorf("%s: the runtime's word for shared code", name)
		}
		plain, list, _ := strings.Cut(name, "(")
		if was, ok := seen[plain]; ok && (was == "") != (list == "") {
			t.Errorf("%s is also named (%s", name, was)
		}
		seen[plain] = list
	}
}
