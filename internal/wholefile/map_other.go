//go:build !unix

package wholefile

const noWait = 0

// Map is Read where files are not mapped; an empty file is refused as it is there.
func Map(path string, most int64) ([]byte, error) {
	data, err := Read(path, most)
	if err == nil && len(data) == 0 {
		return nil, &Error{path, Empty, 0}
	}
	return data, err
}

// MapShared is Map.
func MapShared(path string, most int64) (*Mapping, error) {
	data, err := Map(path, most)
	if err != nil {
		return nil, err
	}
	return &Mapping{data}, nil
}
