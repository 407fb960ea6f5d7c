// Package target knows a process that is sampled: its mappings and module table, the tables of
// its runtime, the names of its methods, and the runtime's list of threads.
//
// Sources: the packages process/live, clr/contract and clr/naming.
//
// Glossary. The tables are *proven* once the runtime's own data agree with the layout that its
// data contract publishes.
//
// Strategy. Mappings are read again when a walk ends in unknown code, for at most a twentieth of
// the time. A module that holds no runtime is refused once, another one is tried again.
//
// Known gaps: one runtime a process.
package target
