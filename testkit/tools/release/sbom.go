package main

import (
	"debug/buildinfo"
	"encoding/json"
	"io"
	"runtime/debug"
)

// bom has the fields of CycloneDX 1.6 that the tool writes.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// writeSBOM lists the modules that a Go program was linked from, as the program records
// them. Each has the hash of go.sum as a property: it is no hash of a file, so CycloneDX's
// own field does not fit.
func writeSBOM(w io.Writer, file, version string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	root := module("application", info.Main.Path, "v"+version)
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			root.Properties = append(root.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := bom{"CycloneDX", "1.6", 1, metadata{root}, []component{module("library", "std", info.GoVersion)}}
	for _, dep := range info.Deps {
		b.Components = append(b.Components, library(dep))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

func library(dep *debug.Module) component {
	if dep.Replace != nil {
		dep = dep.Replace
	}
	c := module("library", dep.Path, dep.Version)
	if dep.Sum != "" {
		c.Properties = []property{{"go:sum", dep.Sum}}
	}
	return c
}

func module(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}
