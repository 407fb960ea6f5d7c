// Package walker makes the walker of an architecture: the one place above which
// code need not know which there are.
//
// Sources: those of packages unwind/amd64 and unwind/arm64.
//
// Glossary: that of package unwind.
//
// Strategy: a switch over the architectures, here and nowhere else. Who may not depend
// on both imports the one it needs.
//
// Known gaps: an architecture that is not walked has no walker, nil.
package walker

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// New returns a walker of a's stacks over an empty module table; nil of an
// architecture that is not walked.
func New(a context.Arch) unwind.Walker {
	switch a {
	case context.ArchAMD64:
		return amd64.New()
	case context.ArchARM64:
		return arm64.New()
	}
	return nil
}
