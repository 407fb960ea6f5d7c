package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"time"
)

// tool is the program of one architecture.
type tool struct{ arch, file string }

// descriptor points to a blob of the layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

const mediaTypes = "application/vnd.oci.image."

// layout is an OCI image layout that is written as a tar.
type layout struct {
	tar   *tar.Writer
	times time.Time
}

func (l *layout) write(name string, data []byte) error {
	return addFile(l.tar, name, 0o644, data, l.times)
}

// blob adds data under its digest.
func (l *layout) blob(mediaType string, data []byte) (descriptor, error) {
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	return descriptor{MediaType: mediaTypes + mediaType, Digest: "sha256:" + sum, Size: len(data)},
		l.write("blobs/sha256/"+sum, data)
}

func (l *layout) json(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(mediaType, data)
}

// writeOCI writes one image with the tool and an empty /tmp for all architectures, as an OCI layout in a tar.
func writeOCI(w io.Writer, tools []tool, version string, at time.Time) error {
	l := &layout{tar.NewWriter(w), at}
	if err := l.write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	manifests := []descriptor{}
	for _, t := range tools {
		d, err := l.image(t, version)
		if err != nil {
			return err
		}
		manifests = append(manifests, d)
	}
	list, err := l.json("index.v1+json",
		map[string]any{"schemaVersion": 2, "mediaType": mediaTypes + "index.v1+json", "manifests": manifests})
	if err != nil {
		return err
	}
	list.Annotations = map[string]string{"org.opencontainers.image.ref.name": version}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": mediaTypes + "index.v1+json",
		"manifests": []descriptor{list}})
	if err != nil {
		return err
	}
	if err := l.write("index.json", index); err != nil {
		return err
	}
	return l.tar.Close()
}

// image adds the image of one architecture: a layer, its configuration, and the manifest.
func (l *layout) image(t tool, version string) (descriptor, error) {
	program, err := os.ReadFile(t.file)
	if err != nil {
		return descriptor{}, err
	}
	plain, packed, err := layer(program, l.times)
	if err != nil {
		return descriptor{}, err
	}
	layer, err := l.blob("layer.v1.tar+gzip", packed)
	if err != nil {
		return descriptor{}, err
	}
	config, err := l.json("config.v1+json", map[string]any{
		"created": l.times, "architecture": t.arch, "os": "linux",
		"config": map[string]any{
			"Entrypoint": []string{"/usr/bin/seedwalk"}, "Env": []string{"PATH=/usr/bin"},
			"Labels": map[string]string{"org.opencontainers.image.version": version,
				"org.opencontainers.image.licenses": "Apache-2.0"},
		},
		"rootfs": map[string]any{"type": "layers",
			"diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}},
	})
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.json("manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": mediaTypes + "manifest.v1+json", "config": config,
		"layers": []descriptor{layer},
	})
	d.Platform = &platform{t.arch, "linux"}
	return d, err
}

// layer is the root of the image as a tar, plain and compressed. /tmp is for recordings.
func layer(program []byte, at time.Time) (plain, packed []byte, err error) {
	var b, z bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []struct {
		name string
		mode int64
	}{{"tmp/", 0o1777}, {"usr/", 0o755}, {"usr/bin/", 0o755}} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir.name,
			Mode: dir.mode, ModTime: at}); err != nil {
			return nil, nil, err
		}
	}
	if err := addFile(w, "usr/bin/seedwalk", 0o755, program, at); err != nil {
		return nil, nil, err
	}
	if err := w.Close(); err != nil {
		return nil, nil, err
	}
	g, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		return nil, nil, err
	}
	if _, err := g.Write(b.Bytes()); err != nil {
		return nil, nil, err
	}
	if err := g.Close(); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), z.Bytes(), nil
}

func addFile(w *tar.Writer, name string, mode int64, data []byte, at time.Time) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Clean(name), Mode: mode,
		Size: int64(len(data)), ModTime: at}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
