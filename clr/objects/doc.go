// Package objects reads the managed heap of another process: which objects there are, of
// which types, and what is in their fields.
//
// Sources: dotnet/runtime release/9.0 and release/10.0, docs/design/datacontracts
// (RuntimeTypeSystem.md, Object.md), src/coreclr/vm/field.h and class.h (FieldDesc, EEClass),
// src/coreclr/gc/gcinterface.dac.h and gcinterface.dacvars.def (the variables of the garbage
// collector for debuggers).
//
// Glossary. A *MethodTable* is the runtime's description of a type; every object begins with
// the address of one. A *FieldDesc* gives a field's row in metadata and its offset. A *region*
// is a part of the heap whose objects follow each other. An *allocation context* is the part
// of a region that one thread allocates from; it holds no objects beyond its pointer.
//
// Strategy. Offsets of managed fields come from the runtime's FieldDescs, by the names in
// metadata, never from constants. Each structure proves itself: a MethodTable's class leads
// back to it, a FieldDesc belongs to its type's rows. Regions come from the collector's own
// list, and each is walked from object to object, so that what the collector has freed is
// not taken for an object.
//
// Known gaps: objects that nothing refers to any more are seen until the collector frees
// them. While a collection moves objects, a part of them is missed.
package objects
