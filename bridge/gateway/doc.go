//go:build !js

// Package gateway brings the resources and tools of open pages to the agents on a desktop.
//
// A Gateway is one MCP server: the engine of package bridge, to which pages are sources and agents are clients. Pages
// are attached to it (Attach) and speak the link of package link; agents connect to it (Connect) and speak MCP, each
// over a mcpconn.Conn. How the frames and messages travel is the business of the packages beside this one: cdp and socket
// bring pages in, agents brings agents in, and daemon brings the agents of one user to one process.
//
// A message's way: agent.go takes an agent's request. The engine answers it, or asks host.go, which finds the page
// in catalog.go and asks it through linked.go. What the page says comes in through
// page.go. A change's way: page.go and linked.go hear of it, changes.go tells the engine, and the engine tells the
// agents. tools.go offers the pages' tools, and beside them those of package tools/own, which give everything once
// more to agents that know only tools.
//
// Package live/follow keeps what each agent has seen. The record is bounded, and ends with the agent: a stdio
// process, or a legacy session over HTTP (memory.go). Agents that share a connection, such as two subagents, share a
// record. With it, tools/own gives the difference alone, and says after a tool's result what has changed since.
// prompt.go says it to a program's hook, and fresh.go has a page refuse a call that was made with old state. These
// ask pages by a toolCall (toolcall.go, look.go), and package live makes the texts. A request of the modern era over
// HTTP belongs to no session, so it has only since.
//
// Beyond that the gateway never holds what a resource reads as, never speaks MCP to a page, never offers a page's URI
// at another origin than the one it was attached with, and opens no socket.
package gateway
