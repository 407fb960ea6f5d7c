// Package sampler is what all ways of sampling share: a copied stack is walked, held until the
// runtime's tables are proven, counted, and sent. The configuration of a recording is here too.
//
// Sources: the packages stack/walk, sample/target and report/wire.
//
// Glossary. A sample is *held* while it may be walked better later.
//
// Strategy. An engine embeds Base, gives it functions that read mappings and rests of stacks, and
// sends through it. What is held is bounded in number and bytes.
//
// Known gaps: what is held when its bound is reached is walked as far as it goes.
package sampler
