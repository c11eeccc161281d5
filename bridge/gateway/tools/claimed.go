//go:build !js

package tools

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Claimed is a page's tool as agents see it. Its annotations move into words, as the page's own claims: clients skip
// questions for a tool with readOnlyHint, and a page may claim anything.
func Claimed(t *mcp.Tool) mcp.Tool {
	shown := *t
	if shown.Annotations == nil {
		return shown
	}
	a := shown.Annotations
	shown.Annotations = nil
	if shown.Title == "" {
		shown.Title = a.Title
	}
	var claims []string
	claim := func(made bool, words string) {
		if made {
			claims = append(claims, words)
		}
	}
	claim(a.ReadOnlyHint, "read-only")
	claim(a.DestructiveHint != nil && *a.DestructiveHint, "destructive")
	claim(a.DestructiveHint != nil && !*a.DestructiveHint, "not destructive")
	claim(a.IdempotentHint, "idempotent")
	claim(a.OpenWorldHint != nil && !*a.OpenWorldHint, "closed world")
	if len(claims) > 0 {
		shown.Description = strings.TrimSpace(shown.Description + " The page says: " + strings.Join(claims, ", ") + ".")
	}
	return shown
}
