//go:build !js

// Package tools is what becomes of pages' tools on their way to an agent: their names, the claims they make of
// themselves, and their results.
//
// It runs no tool, knows of no page, and holds no lock: Names is its owner's to guard, all else is functions.
package tools
