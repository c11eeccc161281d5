// Package gate makes typed values of what a page gives, once, when it arrives: its tools with their
// schemas, annotations and hints, results of tools, contents of reads, progress and _meta. What the
// package does not know does not pass: nothing is copied along by its name. Shapes that clients or
// the APIs of models refuse are mended. An entry that cannot be mended is left out alone, and the
// page is told.
//
// It never compiles, matches or evaluates anything of a page without a bound on the work, and never
// holds a lock, starts a goroutine or reads a clock.
package gate

import "slices"

// A Fault is a part of what a page gives that agents do not get as it is.
type Fault struct {
	Member string // where it is, such as "inputSchema.properties.q.pattern"
	Reason string // what became of it, and why
}

func (f Fault) String() string { return f.Member + ": " + f.Reason }

// Faults are those of a tool or an answer, in order. They are for the page's developer.
type Faults []Fault

// maxFaults bounds the faults of one schema or answer.
const maxFaults = 10

// add adds a fault, once: a page may repeat one a million times.
func (f *Faults) add(member, reason string) {
	fault := Fault{cut(member, 300), cut(reason, 300)}
	if len(*f) < maxFaults && !slices.Contains(*f, fault) {
		*f = append(*f, fault)
	}
}

func (f *Faults) leaveOut(member, why string) { f.add(member, "left out, because "+why) }
