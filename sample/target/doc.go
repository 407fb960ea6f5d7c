// Package target describes the sampled process: its mappings and module table, the tables of its runtime, the
// names of its methods, and the runtime's list of threads.
//
// Sources: the packages process/live, clr/contract and clr/naming.
//
// Glossary. The tables are *proven* once the runtime's own data agree with the layout that its data contract
// publishes.
//
// Strategy. The mappings are read again when a walk ends in unknown code, for at most a twentieth of the
// time. A module that cannot hold a runtime is refused once; others are tried again.
//
// Known gaps: one runtime per process.
package target
