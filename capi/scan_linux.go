//go:build cgo

package main

import (
	"github.com/seedwalk/seedwalk/live"
	"github.com/seedwalk/seedwalk/module"
)

// newScanner reads this process's mappings.
func newScanner() scanner {
	loader := live.NewLoader(0)
	return func() *module.Table {
		maps, err := live.Maps(0)
		if err != nil {
			return nil
		}
		return loader.Table(maps)
	}
}
