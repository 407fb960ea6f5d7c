// Package speedscope has the types of speedscope's file format that seedwalk writes.
//
// Sources: https://www.speedscope.app/file-format-schema.json.
//
// Glossary. A sample is a stack: indices of frames, root first. Its weight is how long it lasted.
//
// Strategy. The types mirror the format.
//
// Known gaps: only sampled profiles, no evented ones.
package speedscope

// File is a whole file.
type File struct {
	Schema   string    `json:"$schema"`
	Name     string    `json:"name"`
	Exporter string    `json:"exporter"`
	Active   int       `json:"activeProfileIndex"`
	Shared   Shared    `json:"shared"`
	Profiles []Profile `json:"profiles"`
}

// Shared holds the table of frames.
type Shared struct {
	Frames []Frame `json:"frames"`
}

// Frame is a function.
type Frame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
}

// Profile is a list of stacks with their weights. It has the order of time only if the samples were
// added so.
type Profile struct {
	Type    string    `json:"type"`
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Start   int64     `json:"startValue"`
	End     int64     `json:"endValue"`
	Samples [][]int32 `json:"samples"`
	Weights []int64   `json:"weights"`
}

// Add adds a sample with its weight.
func (p *Profile) Add(stack []int32, weight int64) {
	p.Samples = append(p.Samples, stack)
	p.Weights = append(p.Weights, weight)
	p.End += weight
}
