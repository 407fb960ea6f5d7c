package inspect

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"
)

// Class is the class of a finding.
type Class string

const (
	Malformed     Class = "malformed"     // cannot be read; a walk there ends with BadInfo
	Contradictory Class = "contradictory" // can be read, but parts disagree
	Overlapping   Class = "overlapping"   // covers the same bytes as another entry
	Unsupported   Class = "unsupported"   // well formed, but not supported
	Remark        Class = "remark"        // harmless, but a reader should know
)

var classOrder = map[Class]int{Malformed: 0, Contradictory: 1, Overlapping: 2, Unsupported: 3, Remark: 4}

// Finding is one kind of result of a check.
type Finding struct {
	Class    Class    `json:"class"`
	What     string   `json:"what"`
	Count    int      `json:"count"`
	Examples []string `json:"examples,omitempty"`
}

// Check is the result of a check of every entry of an image.
type Check struct {
	File     string    `json:"file"`
	Format   string    `json:"format"`
	Arch     string    `json:"arch"`
	Entries  int       `json:"entries"`
	Findings []Finding `json:"findings"`
	Seconds  float64   `json:"seconds"`    // time to open the file and check every entry
	PeakKiB  int64     `json:"peak_kib"`   // of the whole process; 0 = the system does not say
	Size     int64     `json:"file_bytes"` // of the file
}

// Count adds up the findings of a class.
func (c *Check) Count(class Class) int {
	n := 0
	for _, f := range c.Findings {
		if f.Class == class {
			n += f.Count
		}
	}
	return n
}

// maxExamples bounds the examples of one finding.
const maxExamples = 3

// checker collects findings.
type checker struct {
	entries int
	found   map[string]*Finding
}

// add counts n occurrences of a finding. It calls example only if it keeps the example.
func (c *checker) add(class Class, what string, n int, example func() string) {
	if n <= 0 {
		return
	}
	key := string(class) + what
	f := c.found[key]
	if f == nil {
		f = &Finding{Class: class, What: what}
		c.found[key] = f
	}
	f.Count += n
	if example != nil && len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, example())
	}
}

// CheckFile opens an image and checks every entry.
func CheckFile(path string) (*Check, error) {
	start := time.Now()
	im, err := Open(path)
	if err != nil {
		return nil, err
	}
	c := checker{found: map[string]*Finding{}}
	im.reader.check(&c)
	s := im.reader.summary()
	out := &Check{File: path, Format: s.Format, Arch: s.Arch, Entries: c.entries, Findings: []Finding{},
		Seconds: time.Since(start).Seconds(), PeakKiB: peak()}
	if st, err := os.Stat(path); err == nil {
		out.Size = st.Size()
	}
	for _, f := range c.found {
		out.Findings = append(out.Findings, *f)
	}
	sort.Slice(out.Findings, func(i, j int) bool {
		a, b := &out.Findings[i], &out.Findings[j]
		if a.Class != b.Class {
			return classOrder[a.Class] < classOrder[b.Class]
		}
		return a.What < b.What
	})
	return out, nil
}

// peak returns this process's largest resident size in KiB, according to Linux.
func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Sys >> 10)
	}
	_, rest, ok := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[0]), 10, 64) // 0 if it is no number
	return n
}

func at(addr uint64) func() string { return func() string { return fmt.Sprintf("%#x", addr) } }
