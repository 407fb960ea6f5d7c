//go:build cgo

package main

import (
	"os"
	"sync/atomic"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// rawFile takes the samples that seedwalk_merge merges, with their copied stacks, if
// SEEDWALK_RAW names a file: for whoever judges this library. One of the process writes
// it: its sampler, or the first instance to merge.
type rawFile struct {
	w     *raw.Writer
	table *module.Table // the last that was written
	tried bool
}

// rawTaken means that the file is being written.
var rawTaken atomic.Bool

// takeRaw is the file's path for whoever asks first, "" for others.
func takeRaw() string {
	if path := os.Getenv("SEEDWALK_RAW"); path != "" && rawTaken.CompareAndSwap(false, true) {
		return path
	}
	return ""
}

func (r *rawFile) open(own bool) {
	r.tried = true
	if !own {
		return
	}
	if path := takeRaw(); path != "" {
		r.w, _ = raw.Create(path) // a nil Writer drops everything
	}
}

// record writes the capture that was merged.
func (in *instance) record(res *merge.Result) {
	r := &in.raw
	if !r.tried {
		r.open(in.own)
	}
	if r.w == nil {
		return
	}
	if r.table != in.table {
		r.w.Table(in.table)
		r.table = in.table
	}
	r.w.Sample(&in.capture, res, in.merged[:res.N])
}
