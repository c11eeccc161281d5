// Package skills has the skills that Pagewire gives to agents (agentskills.io): texts that a model
// loads when a task fits their description. It never runs anything. A skill changes only with a
// release: hosts ask their users again after each change of its bytes.
package skills

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"

	"github.com/pagewire/pagewire/bridge"
)

// Files has SKILL.md of each skill, in a folder with the skill's name.
//
//go:embed */SKILL.md
var Files embed.FS

// LivePages is the skill for agents that use pages, AddLiveState the skill for agents that write
// pages.
const LivePages, AddLiveState = "live-pages", "add-live-state"

// Names are the names of all skills.
var Names = []string{LivePages, AddLiveState}

// Text returns a skill's SKILL.md. It panics for a name that is not in Names.
func Text(name string) string {
	text, err := Files.ReadFile(name + "/SKILL.md")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Served returns the skills that a gateway serves to its agents: LivePages. All gateways share them:
// a node has one for each user.
var Served = sync.OnceValue(func() []bridge.Skill {
	type object map[string]any
	text, uri := Text(LivePages), URI(LivePages)
	sum := sha256.Sum256([]byte(text))
	front := object{}
	for line := range strings.SplitSeq(frontmatter(text), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		front[key] = value
	}
	file := object{"uri": uri, "digest": "sha256:" + hex.EncodeToString(sum[:]), "size": len(text)}
	return []bridge.Skill{{URI: uri,
		Entry:    encode(object{"uri": uri, "frontmatter": front, "resources": []object{file}}),
		Contents: encode([]object{{"uri": uri, "mimeType": "text/markdown", "text": text}})}}
})

// URI returns the URI of a skill's SKILL.md.
func URI(name string) string { return "skill://pagewire/" + name + "/SKILL.md" }

// frontmatter returns the beginning of a SKILL.md, between its two lines of hyphens.
func frontmatter(text string) string {
	front, _, _ := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	return front
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // impossible: value has only strings and numbers
	}
	return string(text)
}
