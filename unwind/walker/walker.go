// Package walker makes the walker of an architecture. It is the only place that must know which architectures
// there are.
//
// Sources: those of packages unwind/amd64 and unwind/arm64.
//
// Glossary: that of package unwind.
//
// Strategy: a switch over the architectures, only here. Packages that may not depend on both import the one
// that they need.
//
// Known gaps: an unsupported architecture has no walker, nil.
package walker

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// New returns a walker for stacks of a with an empty module table; nil for an unsupported architecture.
func New(a context.Arch) unwind.Walker {
	switch a {
	case context.ArchAMD64:
		return amd64.New()
	case context.ArchARM64:
		return arm64.New()
	}
	return nil
}
