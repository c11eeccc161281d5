package hook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

type process struct {
	pid, parent int
	// began is the start time, in the system's unit. Together with pid it identifies one process.
	began uint64
	name  string // the program's, which the system may have shortened
	// terminal is true for the leader of a terminal's session: a person's shell, or another program
	// that the terminal has started.
	terminal bool
}

func (p process) String() string { return fmt.Sprintf("%d at %d", p.pid, p.began) }

// maxAncestors bounds the search. Between an agent and its `pagewire serve` there are four
// processes with npx.
const maxAncestors = 32

// ancestors lists a process's parent, grandparent, and so on, up to the leader of a terminal's
// session. No process above that leader is the agent.
func ancestors(pid int, find func(int) (process, bool)) (chain []process) {
	p, ok := find(pid)
	for ok && p.parent > 0 && len(chain) < maxAncestors {
		up, known := find(p.parent)
		if !known || up.began > p.began { // the parent has ended, and a later process has its pid
			break
		}
		chain = append(chain, up)
		p, ok = up, !up.terminal
	}
	return chain
}

// shells are programs that run a command line for another one.
var shells = strings.Fields(
	"sh bash dash zsh ksh mksh ash busybox fish csh tcsh cmd.exe powershell.exe pwsh " +
		"pwsh.exe env timeout nice nohup")

// A starter is the process that started a hook.
type starter struct {
	process
	// agent is false for a person's shell: a `pagewire serve` below it need not belong to the
	// hook's agent.
	agent bool
}

// starterOf finds the process that started another: its first ancestor that is not a shell,
// otherwise its last ancestor.
func starterOf(pid int, find func(int) (process, bool)) (s starter) {
	for _, p := range ancestors(pid, find) {
		s.process = p
		if name := strings.TrimPrefix(p.name, "-"); !slices.Contains(shells, name) {
			s.agent = true
			break
		}
	}
	return s
}

// among lists the processes in pids that descend from the starter, of these only the nearest, in
// order of their start. The others can be of another agent: if the starter has started one, that
// agent's `pagewire serve` is below both.
func (s starter) among(pids []int, find func(int) (process, bool)) (found []int) {
	if !s.agent {
		return nil
	}
	type descendant struct {
		process
		distance int
	}
	var list []descendant
	for _, pid := range pids {
		distance := slices.IndexFunc(ancestors(pid, find), func(p process) bool {
			return p.pid == s.pid && p.began == s.began
		})
		if p, ok := find(pid); ok && distance >= 0 {
			list = append(list, descendant{p, distance})
		}
	}
	slices.SortFunc(list, func(a, b descendant) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.began, b.began),
			cmp.Compare(a.pid, b.pid))
	})
	for _, d := range list {
		if d.distance == list[0].distance {
			found = append(found, d.pid)
		}
	}
	return found
}
