//go:build !js

// Package live makes what an agent is given of a resource: a Look is what it reads as now, in pages.go it is given in
// parts, and in change.go what differs from what that agent has (package seen) is one line of JSON, by package delta.
//
// It computes, and does no more: it reads no page and no clock, keeps nothing, and holds no lock. Whatever a page wrote
// is data here: it leaves as the text of a tool's result, or within a string of JSON on one line.
package live
