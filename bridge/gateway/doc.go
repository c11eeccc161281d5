// Package gateway brings the resources and tools of open pages to the agents on a desktop.
//
// A Gateway is one MCP server: the engine of package bridge, with pages as sources and agents as
// clients. Pages are attached (Attach) and speak the link of package link. Agents connect (Connect)
// and speak MCP, each over a mcpconn.Conn. The packages below transport the frames and messages:
// pages/cdp, pages/socket and pages/extension for pages, agents for agents, and daemon, which
// brings the agents of one user to one process.
//
// A request: agent.go receives it. The engine answers it, or asks host.go, which finds the page in
// package catalog and asks it through linked.go. Changes of the catalogue go through routes.go. The
// page's answer arrives in page.go. A change: it arrives in page.go and linked.go, changes.go
// passes it to the engine, and the engine notifies the agents. tools.go offers the tools of the
// pages and those of package calls. The latter give the same state to agents that know only tools.
// What a page shows, which its user offers, comes from a Page of its own (shown.go).
//
// Package follow records what each agent has seen. The record is bounded, and ends with the agent:
// a stdio process, or a legacy session over HTTP (agent.go). Agents that share a connection, such
// as two subagents, share a record. With the record, calls gives only the difference, adds a reminder
// of changes to a tool's result, gives these changes to a program's hook (prompt.go), and refuses a
// call of a page's tool that is based on old state. It asks pages by a toolCall (toolcall.go,
// look.go), and package live writes the texts. A modern request over HTTP belongs to no session and
// has no record. For the difference it must give a revision as the argument since.
//
// Apart from the record, the gateway keeps no contents of resources. It speaks no MCP to a page,
// offers a page's URIs only at the page's own origin, and opens no socket.
package gateway
