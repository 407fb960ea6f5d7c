// Command bundle extracts files from .NET single-file programs, and replaces them:
//
//	bundle list PROGRAM
//	bundle extract PROGRAM PATH FILE
//	bundle replace PROGRAM PATH FILE OUT
//
// replace writes OUT, the program with FILE in the place of the file PATH.
package main

import (
	"fmt"
	"os"

	"github.com/seedwalk/seedwalk/testkit/bundle"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

var arguments = map[string]int{"list": 1, "extract": 3, "replace": 4}

func run(args []string) error {
	if len(args) == 0 || len(args)-1 != arguments[args[0]] {
		return fmt.Errorf("usage: bundle list PROGRAM | extract PROGRAM PATH FILE | replace PROGRAM PATH FILE OUT")
	}
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	b, err := bundle.Read(data, args[1])
	if err != nil {
		return err
	}
	if args[0] == "list" {
		for _, e := range b.Entries {
			fmt.Printf("%10d %10d %d %s\n", e.Offset, e.Size, e.Kind, e.Path)
		}
		return nil
	}
	e, err := b.Find(args[2])
	if err != nil {
		return err
	}
	if args[0] == "extract" {
		content, err := b.Bytes(e)
		if err != nil {
			return err
		}
		return os.WriteFile(args[3], content, 0o644)
	}
	content, err := os.ReadFile(args[3])
	if err != nil {
		return err
	}
	if err := b.Replace(e, content); err != nil {
		return err
	}
	return os.WriteFile(args[4], b.Data, 0o755)
}
