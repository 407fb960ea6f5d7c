// Package intern gives each distinct key an index into a table of rows.
//
// Sources: none.
//
// Glossary. A *key* decides which rows are equal. A *row* is what the table keeps of it.
//
// Strategy: a map has the index of each key, and a slice the rows in the order of their first use. The caller
// owns both.
//
// Known gaps: a table never shrinks; callers bound it.
package intern

// At returns the index of key's row. If the key is new, At appends what row returns. index and rows belong
// together: only At and Value change them.
func At[K comparable, R any, I int | int32](index map[K]I, rows *[]R, key K, row func() R) I {
	i, ok := index[key]
	if !ok {
		r := row() // which may add rows, too
		i = I(len(*rows))
		*rows, index[key] = append(*rows, r), i
	}
	return i
}

// Value is At for rows that are their own keys.
func Value[R comparable, I int | int32](index map[R]I, rows *[]R, r R) I {
	i, ok := index[r]
	if !ok {
		i = I(len(*rows))
		*rows, index[r] = append(*rows, r), i
	}
	return i
}
