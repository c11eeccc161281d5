// Package tools prepares the tools of pages for agents: their names, and their claims about
// themselves.
//
// It runs no tool, knows no page, and holds no lock: the owners of a Names and a Listing guard
// them.
package tools
