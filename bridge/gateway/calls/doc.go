// Package calls has the gateway's own tools: list, read and wait. They give the pages' resources to agents that know only
// tools. The package also makes the reminder at the end of each tool's result, a page's tool included: the changes
// since the agent read.
//
// It reaches pages and agents through a Call, and never reads a page or speaks MCP itself. It has no lock, and all its
// timers and reads end with their Call. It runs under the gateway's lock, except for the comparison of large texts.
package calls
