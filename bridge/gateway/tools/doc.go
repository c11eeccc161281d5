// Package tools prepares the tools of pages for agents: their names, the claims that they make of themselves, and their
// results.
//
// It runs no tool, knows of no page, and holds no lock: the owner of a Names guards it; the rest is functions.
package tools
