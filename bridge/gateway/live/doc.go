// Package live makes the texts that agents get of a resource. A Look is a resource as it reads now. pages.go cuts it
// into parts, and change.go describes in one line of JSON how it differs from the agent's version (packages seen and
// delta).
//
// It only computes: it reads no page and no clock, keeps nothing, and holds no lock. A page's text is data here: it
// leaves as the text of a tool's result, or within a string of JSON on one line.
package live
