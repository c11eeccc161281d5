//go:build !js

// Package agents brings agents to a gateway: over stdio, and over Streamable HTTP in both eras of the protocol.
//
// Each agent is a session of its own (gateway.Connect): an agent that is started with our stdin and stdout is one, so
// is each Mcp-Session-Id of the legacy era, and in the modern era, which has no sessions, each request. What they ask
// is answered by the core's engine, the same for all of them; here their messages are only framed, bounded and, over
// HTTP, checked for where they come from.
//
// The package never listens (who uses it does), never answers for the engine but where HTTP itself demands it (status
// codes, headers, a session that is not there), keeps no message that the engine could keep, and never lets one agent
// wait for another.
//
// It does not use go-sdk's transports; bridge/RATIONALE.md says why.
package agents
