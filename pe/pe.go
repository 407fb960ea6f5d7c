// Package pe reads PE images and their unwind data.
package pe

// File is a parsed PE image.
type File struct{}
