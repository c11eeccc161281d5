// Package calls runs calls of tools: a goroutine for each, which blocks while it waits. It has the
// gateway's own tools (list, read and wait), which give the pages' resources to agents that know
// only tools. The package also makes the reminder at the end of each tool's result, a page's tool
// included: the changes since the agent read. Hooks get these changes too (prompt.go). It refuses a
// call of a page's tool by an agent that does not know the present state (fresh.go).
//
// A call's goroutine holds the gateway's lock, so it reads, decides and notes what the agent is
// given in one step. It lets go of the lock only in the methods of its Turn, and in functions that
// take a context. So whoever calls such a function waits there, and asks again after it what may
// have changed: whether its context has ended, what the agent sees, and whether a page is still
// there. The contexts end with the call, under the lock: when the agent cancels it or has gone,
// when the page is no longer permitted, and at the gateway's end, which waits for all goroutines.
//
// The package reaches pages and agents through a Call. It never reads a page, speaks MCP or decides
// what an agent sees, and has no lock of its own.
package calls
