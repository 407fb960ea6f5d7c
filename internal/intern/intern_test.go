package intern

import (
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Equal keys have one row, and a row that adds another one keeps its own index.
func TestAt(t *testing.T) {
	index, rows := map[int]int32{}, []string{"none"}
	var at func(int) int32
	at = func(key int) int32 {
		return At(index, &rows, key, func() string {
			if key > 1 {
				at(key - 1)
			}
			return fmt.Sprint(key)
		})
	}
	expect.Slices(t, []int32{at(7), at(3), at(3), at(7), at(1)}, []int32{7, 3, 3, 7, 1}, "indices")
	expect.Slices(t, rows, []string{"none", "1", "2", "3", "4", "5", "6", "7"}, "rows")
	texts, list := map[string]int{}, []string(nil)
	for i, s := range []string{"a", "b", "a", "", "b"} {
		expect.Equal(t, Value(texts, &list, s), []int{0, 1, 0, 2, 1}[i], "text %d", i)
	}
	expect.Slices(t, list, []string{"a", "b", ""}, "texts")
}
