// Package gate makes typed values of what a page gives, once, when it arrives: its tools with their
// schemas, annotations and hints, results of tools, contents of reads, progress and _meta. What the package does not know does not pass: nothing is copied along
// by its name. Shapes that clients or the APIs of models refuse are mended. An entry that cannot be
// mended is left out alone, and the page is told.
//
// It never compiles, matches or evaluates anything of a page without a bound on the work, and never
// holds a lock, starts a goroutine or reads a clock.
package gate

// A Fault is a part of what a page gives that agents do not get as it is.
type Fault struct {
	Member string // where it is, such as "inputSchema.properties.q.pattern"
	Reason string // what became of it, and why
}
