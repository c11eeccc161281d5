//go:build !js

// Package tools prepares the tools of pages for agents: their names, the claims that they make of themselves, and
// their results.
//
// It runs no tool, knows of no page, and holds no lock: Names is its owner's to guard, all else is functions.
package tools
