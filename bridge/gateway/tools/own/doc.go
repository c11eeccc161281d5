// Package own has the gateway's own tools: list, read and wait. They give the pages' resources to agents that know only
// tools. It also makes the reminder at the end of each tool's result, a page's too: what has changed since the agent
// looked.
//
// It reaches pages and agents through a Call, and never reads a page or speaks MCP itself. It has no lock, and
// everything that it starts ends with its Call. It runs under the gateway's lock, except for the comparison of large
// texts.
package own
