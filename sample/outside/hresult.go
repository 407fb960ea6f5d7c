package outside

import "fmt"

func hresult(v uint32) string { return fmt.Sprintf("HRESULT %#x", v) }
