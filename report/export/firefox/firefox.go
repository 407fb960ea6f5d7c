// Package firefox has the types of Firefox Profiler's processed profile format that seedwalk writes.
//
// Sources: firefox-devtools/profiler src/types/profile.ts.
//
// Glossary. A track is a row of the profiler's timeline. A resource is what a function belongs to,
// here a library.
//
// Strategy. The types mirror the format: a table is columns of one length, and tables refer to each
// other by index.
//
// Known gaps: only the fields that seedwalk writes are here.
package firefox

// File is a whole profile.
type File struct {
	Meta    Meta     `json:"meta"`
	Libs    []Lib    `json:"libs"`
	Pages   []int    `json:"pages"`
	Shared  Shared   `json:"shared"`
	Threads []Thread `json:"threads"`
}

// Meta holds what is true of the whole file.
type Meta struct {
	Product      string            `json:"product"`
	Start        float64           `json:"startTime"` // unix milliseconds
	Interval     float64           `json:"interval"`
	Version      int               `json:"version"`
	Processed    int               `json:"preprocessedProfileVersion"`
	ProcessType  int               `json:"processType"`
	Symbolicated bool              `json:"symbolicated"` // true: the page asks no server for names
	Categories   []Category        `json:"categories"`
	Markers      []Schema          `json:"markerSchema"`
	Units        map[string]string `json:"sampleUnits"`
	Extra        []Extra           `json:"extra"`
}

// Category is a kind of frames, with its color.
type Category struct {
	Name  string   `json:"name"`
	Color string   `json:"color"`
	Sub   []string `json:"subcategories"`
}

// Schema describes a kind of markers.
type Schema struct {
	Name    string              `json:"name"`
	Display []string            `json:"display"`
	Label   string              `json:"chartLabel"`
	Fields  []map[string]string `json:"fields"`
}

// Extra is a titled list in the panel of the profile.
type Extra struct {
	Label   string  `json:"label"`
	Entries []Entry `json:"entries"`
}

// Entry is a line of an Extra.
type Entry struct {
	Label  string `json:"label"`
	Format string `json:"format"`
	Value  any    `json:"value"`
}

// Lib is a mapped image.
type Lib struct {
	Arch       string  `json:"arch"`
	Name       string  `json:"name"`
	Path       string  `json:"path"`
	DebugName  string  `json:"debugName"`
	DebugPath  string  `json:"debugPath"`
	BreakpadID string  `json:"breakpadId"`
	CodeID     *string `json:"codeId"`
}

// Shared holds the tables that threads refer to.
type Shared struct {
	Strings   []string  `json:"stringArray"`
	Frames    Frames    `json:"frameTable"`
	Funcs     Funcs     `json:"funcTable"`
	Stacks    Stacks    `json:"stackTable"`
	Resources Resources `json:"resourceTable"`
	Symbols   Symbols   `json:"nativeSymbols"`
	Sources   Sources   `json:"sources"`
}

// Frames is the table of frames.
type Frames struct {
	Length      int     `json:"length"`
	Address     []int64 `json:"address"` // from the start of the library, -1 = none
	InlineDepth []int   `json:"inlineDepth"`
	Category    []int   `json:"category"`
	Subcategory []int   `json:"subcategory"`
	Func        []int   `json:"func"`
	Symbol      []*int  `json:"nativeSymbol"`
	Window      []int   `json:"innerWindowID"`
	Line        []*int  `json:"line"`
	Column      []*int  `json:"column"`
}

// Funcs is the table of functions.
type Funcs struct {
	Length   int    `json:"length"`
	Name     []int  `json:"name"`
	IsJS     []bool `json:"isJS"`
	Relevant []bool `json:"relevantForJS"`
	Resource []int  `json:"resource"` // -1 = none
	Source   []*int `json:"source"`
	Line     []*int `json:"lineNumber"`
	Column   []*int `json:"columnNumber"`
}

// Stacks is the table of stacks: a frame and its callers.
type Stacks struct {
	Length int    `json:"length"`
	Frame  []int  `json:"frame"`
	Prefix []*int `json:"prefix"`
}

// Resources is the table of what functions belong to.
type Resources struct {
	Length int    `json:"length"`
	Lib    []int  `json:"lib"`
	Name   []int  `json:"name"`
	Host   []*int `json:"host"`
	Type   []int  `json:"type"`
}

// Symbols is the table of native symbols.
type Symbols struct {
	Length  int   `json:"length"`
	Lib     []int `json:"libIndex"`
	Address []int `json:"address"`
	Name    []int `json:"name"`
	Size    []int `json:"functionSize"`
}

// Sources is the table of source files.
type Sources struct {
	Length   int       `json:"length"`
	ID       []*string `json:"id"`
	Filename []int     `json:"filename"`
	Line     []int     `json:"startLine"`
	Column   []int     `json:"startColumn"`
	Map      []*int    `json:"sourceMapURL"`
}

// Thread is a track.
type Thread struct {
	Name         string   `json:"name"`
	Main         bool     `json:"isMainThread"`
	PID          string   `json:"pid"`
	TID          string   `json:"tid"`
	ProcessName  string   `json:"processName"`
	ProcessType  string   `json:"processType"`
	ProcessStart float64  `json:"processStartupTime"`
	ProcessEnd   *float64 `json:"processShutdownTime"`
	Start        float64  `json:"registerTime"`
	End          *float64 `json:"unregisterTime"`
	Paused       []int    `json:"pausedRanges"`
	Samples      Samples  `json:"samples"`
	Markers      Markers  `json:"markers"`
	ShowMarkers  bool     `json:"showMarkersInTimeline"`
	Last         int64    `json:"-"` // end of the last sample, nanoseconds
	gaps         []int    // samples without a stack
}

// Samples are the samples of a thread.
type Samples struct {
	Length     int       `json:"length"`
	Stack      []*int    `json:"stack"`
	Time       []float64 `json:"time"`
	Weight     []float64 `json:"weight"`
	WeightType string    `json:"weightType"`
	CPU        []int64   `json:"threadCPUDelta"` // since the sample before
}

// Markers are the intervals of a thread.
type Markers struct {
	Length   int       `json:"length"`
	Name     []int     `json:"name"`
	Start    []float64 `json:"startTime"`
	End      []float64 `json:"endTime"`
	Phase    []int     `json:"phase"` // 1 = an interval
	Category []int     `json:"category"`
	Data     []Marker  `json:"data"`
}

// Marker describes one interval.
type Marker struct {
	Type string `json:"type"`
	Name int    `json:"name"`
}

// Add adds a sample of a stack, nil for none, at nanoseconds since the start.
func (t *Thread) Add(at int64, stack *int, weight float64, cpu int64) {
	s := &t.Samples
	s.Length++
	s.Stack, s.Time = append(s.Stack, stack), append(s.Time, float64(at)/1e6)
	s.Weight, s.CPU = append(s.Weight, weight), append(s.CPU, cpu)
}

// Gap adds a sample without a stack, at nanoseconds since the start.
func (t *Thread) Gap(at int64) {
	t.gaps = append(t.gaps, t.Samples.Length)
	t.Add(at, nil, 0, 0)
}

// Fill sets the stack of the gaps whose larger part is after from, in nanoseconds since the start:
// a wait longer than the samples between them covers these gaps.
func (t *Thread) Fill(from int64, stack *int) {
	for n := len(t.gaps); n > 0; n-- {
		g, begin := t.gaps[n-1], 0.0
		if g > 0 {
			begin = t.Samples.Time[g-1]
		}
		if (begin+t.Samples.Time[g])/2 < float64(from)/1e6 {
			return
		}
		t.Samples.Stack[g], t.gaps = stack, t.gaps[:n-1]
	}
}
