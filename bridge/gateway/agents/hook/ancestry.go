//go:build !js

package hook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A process is one of this machine.
type process struct {
	pid, parent int
	// began is when, in any unit: with pid it is one process and no later one.
	began uint64
	name  string // of its program, as the system cuts it
	// terminal says that it leads the session of a terminal: a person's shell, or what a terminal has started in place
	// of one.
	terminal bool
}

func (p process) String() string { return fmt.Sprintf("%d at %d", p.pid, p.began) }

// maxAncestors is how far up is looked. An agent has four between it and its serve, of npx.
const maxAncestors = 32

// ancestors are a process's parent, its parent, and so on, up to the leader of a terminal's session: what is above that is
// no agent of it.
func ancestors(pid int, look func(int) (process, bool)) (chain []process) {
	p, ok := look(pid)
	for ok && p.parent > 0 && len(chain) < maxAncestors {
		up, known := look(p.parent)
		if !known || up.began > p.began { // its number is another's by now
			break
		}
		chain = append(chain, up)
		p, ok = up, !up.terminal
	}
	return chain
}

// shells are programs that run a command line for another one.
var shells = strings.Fields("sh bash dash zsh ksh mksh ash busybox fish csh tcsh cmd.exe powershell.exe pwsh " +
	"pwsh.exe env timeout nice nohup")

// A starter is the process that has started a hook.
type starter struct {
	process
	// agent is false for a person's shell: no serve below it is that of the hook's agent.
	agent bool
}

// starterOf finds the process that has started another one: its first ancestor that is no shell, or the last of them that there is.
func starterOf(pid int, look func(int) (process, bool)) (s starter) {
	for _, p := range ancestors(pid, look) {
		s.process = p
		if name := strings.TrimPrefix(p.name, "-"); !slices.Contains(shells, name) {
			s.agent = true
			break
		}
	}
	return s
}

// among lists those of some processes that the starter has started, the nearest alone: an agent that another one has
// started has its own serve below both. Those of the same distance are in the order in which they began.
func (s starter) among(pids []int, look func(int) (process, bool)) (found []int) {
	if !s.agent {
		return nil
	}
	type descendant struct {
		process
		distance int
	}
	var list []descendant
	for _, pid := range pids {
		distance := slices.IndexFunc(ancestors(pid, look), func(p process) bool {
			return p.pid == s.pid && p.began == s.began
		})
		if p, ok := look(pid); ok && distance >= 0 {
			list = append(list, descendant{p, distance})
		}
	}
	slices.SortFunc(list, func(a, b descendant) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.began, b.began), cmp.Compare(a.pid, b.pid))
	})
	for _, d := range list {
		if d.distance == list[0].distance {
			found = append(found, d.pid)
		}
	}
	return found
}
