package export

import (
	"errors"
	"io"
)

// TextOptions say how to write for people.
type TextOptions struct {
	Color      bool    // ANSI colours; set it only for a terminal
	Width      int     // columns, 0 = 100
	MaxLines   int     // lines of the tree, 0 = 60
	MinPercent float64 // branches below this share of the samples are summed up, 0 = 1
}

var errTodo = errors.New("export: not there yet")

func WriteSummary(w io.Writer, p *Profile, opt TextOptions) error { return errTodo }
func WriteTree(w io.Writer, p *Profile, opt TextOptions) error    { return errTodo }
func WriteText(w io.Writer, p *Profile) error                     { return errTodo }
