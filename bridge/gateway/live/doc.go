// Package live makes the texts of a resource for agents. A Look is the state of a resource at one
// read. pages.go cuts it into pages. change.go describes in one line of JSON how it differs from
// the agent's version (packages seen and delta).
//
// The package only computes: it reads no page and no clock, keeps no state, and holds no lock. A
// page's text is data: it leaves only as the text of a tool's result, or in a JSON string on one
// line.
package live
