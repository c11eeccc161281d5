//go:build !js

// Package gateway brings the resources and tools of open pages to the agents on a desktop.
//
// A Gateway is one MCP server: the engine of package bridge, to which pages are sources and agents are clients. Pages
// are attached to it (Attach) and speak the link of package link; agents connect to it (Connect) and speak MCP, each
// over a mcpconn.Conn; another gateway, the hub, may be joined (Join) in place of a page. How the frames and messages
// travel is the business of the packages beside this one: cdp and socket bring pages in, agents brings agents in, hub
// joins the gateways of one machine.
//
// A message's way: an agent's request comes in through agent.go, the engine answers it or asks host.go, which finds the
// page in catalog.go and asks it through linked.go (a hub through joined.go); what the page says comes in through
// page.go. A change's way: page.go and linked.go hear of it, changes.go tells the engine, and that tells the agents.
// tools.go offers pages' tools, and beside them those of package tools/own, which give all of it once more to agents
// that know nothing else. inpage.go serves agents in a page that has no core.
//
// What each agent has seen is kept by package live/follow, bounded, and gone with the agent: a stdio process, or a
// legacy session over HTTP (memory.go). What shares a connection, such as two subagents, shares that. With it tools/own
// gives the difference alone, and says behind a tool's result what has changed since; prompt.go says it to a program's
// hook, and fresh.go has a page refuse a call that was made with old state. These ask pages by a toolCall (toolcall.go,
// look.go), and package live makes the texts. A request of the modern era over HTTP is nobody's, and so has none of
// this but since.
//
// Beyond that the gateway never holds what a resource reads as, never speaks MCP to a page, never offers a page's URI
// at another origin than the one it was attached with, and opens no socket.
package gateway
