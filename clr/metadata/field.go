package metadata

// Fields returns the rows [first, end) of a type's fields.
func (m *Module) Fields(typ int) (first, end int) {
	first, end = m.cell(tableTypeDef, typ, 4), m.table[tableField].rows+1
	if typ < m.table[tableTypeDef].rows {
		end = min(end, m.cell(tableTypeDef, typ+1, 4))
	}
	return first, end
}

// Field returns the name of a field, "" if there is no such row.
func (m *Module) Field(rid int) string { return m.text(m.cell(tableField, rid, 1)) }

// MethodNamed returns the first row of a type's methods with a name, 0 if there is none.
func (m *Module) MethodNamed(typ int, name string) int {
	first, end := m.methods(typ)
	for i := first; i < min(end, first+maxSiblings); i++ {
		if rid := m.methodAt(i); m.text(m.cell(tableMethodDef, rid, 3)) == name {
			return rid
		}
	}
	return 0
}
