package inspect

import "fmt"

func openPE(path string) (reader, error) {
	return nil, fmt.Errorf("%s: PE images are not read yet", path)
}
