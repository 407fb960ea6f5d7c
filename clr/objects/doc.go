// Package objects reads the managed heap of another process: its objects, their types, and their fields.
//
// Sources: dotnet/runtime release/9.0 and release/10.0, docs/design/datacontracts (RuntimeTypeSystem.md,
// Object.md), src/coreclr/vm/field.h and class.h (FieldDesc, EEClass), src/coreclr/gc/gcinterface.dac.h and
// gcinterface.dacvars.def (the variables of the garbage collector for debuggers).
//
// Glossary. A *MethodTable* is the runtime's description of a type; every object begins with the address of
// one. A *FieldDesc* contains a field's row in metadata and its offset. A *region* is a part of the heap with
// consecutive objects. An *allocation context* is the part of a region that one thread allocates from; it has
// no objects beyond its pointer.
//
// Strategy. Offsets of managed fields come from the runtime's FieldDescs, by the names in metadata,
// never from constants. Each structure is verified: a MethodTable's class refers back to it, a
// FieldDesc belongs to its type's rows. Regions come from the collector's own list. Each is walked from
// object to object, so that the remains in freed memory are not taken for objects.
//
// Known gaps: unreachable objects are included until the collector frees them. While a collection moves
// objects, some are missed.
package objects
