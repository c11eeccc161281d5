package tools

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MetaHints is the key, in a tool's _meta, of the hints that WebMCP has and MCP's annotations lack. A page sends an
// object of booleans. They cannot be annotations, since MCP's typed SDKs drop unknown members there.
const MetaHints = "pagewire/hints"

// Hints are the hints under MetaHints.
type Hints struct {
	// Consequential means that a call may not be undone: it buys, sends or deletes.
	Consequential bool `json:"consequentialHint,omitempty"`
	// UntrustedContent means that results hold text that the page did not write.
	UntrustedContent bool `json:"untrustedContentHint,omitempty"`
	// Debugging means that the tool is for developers of the page.
	Debugging bool `json:"debugging,omitempty"`
}

// HintsOf decodes the hints of a page's tool. A value that is no boolean counts as true, which is the safe side: each
// hint only makes a client ask more, or show less.
func HintsOf(t *mcp.Tool) Hints {
	members, _ := t.Meta[MetaHints].(map[string]any)
	says := func(name string) bool { return members[name] != nil && members[name] != false }
	return Hints{says("consequentialHint"), says("untrustedContentHint"), says("debugging")}
}

// Claimed returns a page's tool as agents see it. Its annotations become words in the description, as the page's own
// claims: clients skip questions for a tool with readOnlyHint, and a page may claim anything. Only a destructiveHint,
// for which clients ask more, is an annotation too.
func Claimed(t *mcp.Tool, h Hints) mcp.Tool {
	shown := *t
	a := t.Annotations
	if a == nil {
		a = &mcp.ToolAnnotations{}
	}
	shown.Annotations = nil
	if shown.Title == "" {
		shown.Title = a.Title
	}
	destructive := a.DestructiveHint != nil && *a.DestructiveHint
	if destructive || h.Consequential {
		yes := true
		shown.Annotations = &mcp.ToolAnnotations{DestructiveHint: &yes}
	}
	var claims []string
	claim := func(made bool, words string) {
		if made {
			claims = append(claims, words)
		}
	}
	claim(a.ReadOnlyHint, "read-only")
	claim(destructive, "destructive")
	claim(a.DestructiveHint != nil && !*a.DestructiveHint, "not destructive")
	claim(a.IdempotentHint, "idempotent")
	claim(a.OpenWorldHint != nil && !*a.OpenWorldHint, "closed world")
	words := []string{shown.Description}
	if len(claims) > 0 {
		words = append(words, "The page says: "+strings.Join(claims, ", ")+".")
	}
	if h.Consequential {
		words = append(words, "The page says that this may not be undone.")
	}
	if h.UntrustedContent {
		words = append(words, "Its results hold text that the page did not write.")
	}
	shown.Description = strings.TrimSpace(strings.Join(words, " "))
	return shown
}
