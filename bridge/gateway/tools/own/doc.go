//go:build !js

// Package own is the gateway's own tools, which offer what pages show to agents that know nothing of resources: list,
// read and wait; and what each result of a tool, a page's too, says of what has changed since the agent looked.
//
// It asks for pages and agents through a Call, and never reads a page or speaks MCP itself. It has no lock, and what it
// starts ends with its Call: all of it runs under the gateway's lock, but for the comparison of large texts.
package own
