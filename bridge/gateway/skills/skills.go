//go:build !js

// Package skills has the skills that Pagewire gives to agents (agentskills.io): texts that a model loads when a task
// fits their description. It never runs anything, and a skill never changes but with a release: hosts ask their users
// again about other bytes.
package skills

import "embed"

// Files are a folder for each skill, of its name, with SKILL.md.
//
//go:embed */SKILL.md
var Files embed.FS

// LivePages is the skill of agents that use pages, and AddLiveState that of agents that write them.
const LivePages, AddLiveState = "live-pages", "add-live-state"

// Names are all skills.
var Names = []string{LivePages, AddLiveState}

// Text returns a skill's SKILL.md. It panics for a name that is not in Names.
func Text(name string) string {
	text, err := Files.ReadFile(name + "/SKILL.md")
	if err != nil {
		panic(err)
	}
	return string(text)
}
