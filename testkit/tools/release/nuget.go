package main

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Packages for `dotnet tool install seedwalk`: one for each runtime identifier, and one that
// names them.
//
// Sources: dotnet/designs accepted/2025/rid-specific-tool-packages.md; the NuGet documentation
// of nuspec and of package types; ECMA-376 part 2 for the parts that make a zip a package.

// nuspec is the manifest of a package.
type nuspec struct {
	XMLName xml.Name   `xml:"http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd package"`
	Meta    nuspecMeta `xml:"metadata"`
}

type nuspecMeta struct {
	ID          string        `xml:"id"`
	Version     string        `xml:"version"`
	Authors     string        `xml:"authors"`
	License     nuspecLicense `xml:"license"`
	ProjectURL  string        `xml:"projectUrl"`
	Description string        `xml:"description"`
	Tags        string        `xml:"tags"`
	Types       []named       `xml:"packageTypes>packageType"`
}

type nuspecLicense struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

type named struct {
	Name string `xml:"name,attr"`
}

// toolSettings is DotnetToolSettings.xml. A package of one runtime identifier has the entry
// point, the other one has the list.
type toolSettings struct {
	XMLName  xml.Name      `xml:"DotNetCliTool"`
	Version  int           `xml:"Version,attr"`
	Commands []toolCommand `xml:"Commands>Command"`
	Packages *toolPackages `xml:"RuntimeIdentifierPackages,omitempty"`
}

type toolCommand struct {
	Name       string `xml:"Name,attr"`
	EntryPoint string `xml:"EntryPoint,attr,omitempty"`
	Runner     string `xml:"Runner,attr,omitempty"`
}

type toolPackages struct {
	List []toolPackage `xml:"RuntimeIdentifierPackage"`
}

type toolPackage struct {
	RID string `xml:"RuntimeIdentifier,attr"`
	ID  string `xml:"Id,attr"`
}

// part is a file of a package.
type part struct {
	name string
	mode os.FileMode
	data []byte
}

// writeNuGet writes the packages into a folder. Tools are those of runtime identifiers.
func writeNuGet(tools []tool, version, folder string, at time.Time) error {
	pointer := toolPackages{}
	for _, t := range tools {
		data, err := os.ReadFile(t.file)
		if err != nil {
			return err
		}
		id, entry := "seedwalk."+t.arch, filepath.Base(t.file)
		pointer.List = append(pointer.List, toolPackage{t.arch, id})
		settings := toolSettings{Version: 2, Commands: []toolCommand{{"seedwalk", entry, "executable"}}}
		if err := writePackage(folder, id, version, "DotnetToolRidPackage", "tools/any/"+t.arch+"/", settings,
			at, part{entry, 0o755, data}); err != nil {
			return err
		}
	}
	return writePackage(folder, "seedwalk", version, "DotnetTool", "tools/any/any/",
		toolSettings{Version: 2, Commands: []toolCommand{{Name: "seedwalk"}}, Packages: &pointer}, at)
}

// writePackage writes a package of a tool, whose files are in the folder dir of it.
func writePackage(folder, id, version, kind, dir string, settings toolSettings,
	at time.Time, files ...part) error {
	manifest := nuspec{Meta: nuspecMeta{ID: id, Version: version, Authors: "The seedwalk authors",
		License:     nuspecLicense{"expression", "Apache-2.0"},
		ProjectURL:  "https://github.com/seedwalk/seedwalk",
		Description: "Sampling profiler for .NET with complete managed and native stacks.",
		Tags:        "profiler performance diagnostics", Types: []named{{kind}}}}
	spec, err := marshal(manifest)
	if err != nil {
		return err
	}
	set, err := marshal(settings)
	if err != nil {
		return err
	}
	parts := []part{{id + ".nuspec", 0o644, spec},
		{"_rels/.rels", 0o644, []byte(xml.Header +
			`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
			`<Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/` + id +
			`.nuspec" Id="R1" /></Relationships>`)}}
	for _, f := range append(files, part{"DotnetToolSettings.xml", 0o644, set}) {
		parts = append(parts, part{dir + f.name, f.mode, f.data})
	}
	f, err := os.Create(filepath.Join(folder, id+"."+version+".nupkg"))
	if err != nil {
		return err
	}
	return errors.Join(writeParts(f, append([]part{contentTypes(parts)}, parts...), at), f.Close())
}

// contentTypes is the part that gives every other one a type.
func contentTypes(parts []part) part {
	var b bytes.Buffer
	b.WriteString(xml.Header +
		`<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" /><Default Extension="nuspec" ContentType="application/octet" />` +
		`<Default Extension="xml" ContentType="application/octet" /><Default Extension="exe" ContentType="application/octet" />`)
	for _, p := range parts {
		if !strings.Contains(filepath.Base(p.name), ".") {
			fmt.Fprintf(&b, `<Override PartName="/%s" ContentType="application/octet" />`, p.name)
		}
	}
	b.WriteString("</Types>")
	return part{"[Content_Types].xml", 0o644, b.Bytes()}
}

func writeParts(f *os.File, parts []part, at time.Time) error {
	z := zip.NewWriter(f)
	for _, p := range parts {
		h := &zip.FileHeader{Name: p.name, Method: zip.Deflate, Modified: at}
		h.SetMode(p.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(p.data); err != nil {
			return err
		}
	}
	return z.Close()
}

func marshal(v any) ([]byte, error) {
	data, err := xml.MarshalIndent(v, "", "  ")
	return append([]byte(xml.Header), data...), err
}
