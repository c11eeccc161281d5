//go:build !js

// Package live makes what an agent is given of a resource. A Look is what the resource reads as now. pages.go cuts
// it into parts, and change.go makes one line of JSON of how it differs from what the agent has (packages seen and
// delta).
//
// It computes, and does no more: it reads no page and no clock, keeps nothing, and holds no lock. Whatever a page wrote
// is data here: it leaves as the text of a tool's result, or within a string of JSON on one line.
package live
