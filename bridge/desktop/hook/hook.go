// Package hook is for the hook of an agent program, `pagewire changes`. The hook asks the daemon
// which changes of the open pages its agent has not been told of.
//
// The program has started a `pagewire serve`. The daemon knows that process, and keeps a record of
// the contents that its agent has seen. The program also starts the hook. A shell, or npx, may be
// in between. The hook asks for the agent whose `pagewire serve` descends from the hook's starter
// (ancestry.go). If none descends from it, or more than one, the hook asks for the record of the
// conversation, which the program names.
//
// The package never waits longer than its caller's context, and starts no process.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
)

const (
	// Path is the path of Agents.Handler at the daemon's socket.
	Path = "/changes"
	// maxAsk and maxTold bound a question and its answer, in bytes.
	maxAsk, maxTold = 256 << 10, 256 << 10
	// patience bounds the time for an answer: hooks give up earlier. A daemon that works lists its
	// agents within listTime.
	patience, listTime = 3 * time.Second, 900 * time.Millisecond
)

// A question is a hook's. Without PID and Session it asks for the list of agents.
type question struct {
	calls.Ask
	// PID is the process of the agent's pipe.
	PID int `json:"pid,omitempty"`
	// Changed, if not nil, asks which of these URIs are news to the agent, for a program that wakes
	// it.
	Changed []string `json:"changed,omitzero"`
}

// told is the answer to a question.
type told struct {
	Text string   `json:"text,omitempty"`
	URIs []string `json:"uris,omitempty"`
	// PIDs are the processes of all agents' pipes.
	PIDs []int `json:"pids,omitempty"`
}

// Changes returns the changes since the agent that has started this process was last told, or "".
// q.Session is the program's name for the conversation, or "". daemon makes requests to the daemon.
// The error is a sentence, and wraps the error of daemon or ctx.
func Changes(ctx context.Context, daemon *http.Client, q calls.Ask) (string, error) {
	s, found, err := pipes(ctx, daemon)
	if err != nil {
		return "", err
	}
	ask := question{Ask: q}
	if q.Session != "" {
		ask.Session = "session " + q.Session
	}
	switch {
	case len(found) == 1 || len(found) > 1 && q.Session == "":
		ask.PID = found[0]
	case q.Session == "":
		ask.Session = "process " + s.String() // the process counts as one conversation
	}
	t, err := post(ctx, ask, daemon)
	return t.Text, err
}

// ErrNoAgent is the error of Unknown if it cannot find the agent that started this process.
var ErrNoAgent = errors.New(
	"this process was not started by an agent with exactly one pagewire serve")

// Unknown is gateway.Agent.Unknown for the agent that has started this process. It fails with
// ErrNoAgent, or as Changes does.
func Unknown(ctx context.Context, daemon *http.Client, uris []string) ([]string, error) {
	_, found, err := pipes(ctx, daemon)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, ErrNoAgent
	}
	t, err := post(ctx, question{PID: found[0], Changed: append([]string{}, uris...)}, daemon)
	return t.URIs, err
}

// pipes finds the process that started this one, and the pids of the pipes that descend from it.
func pipes(ctx context.Context, daemon *http.Client) (s starter, found []int, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	t, err := post(ctx, question{}, daemon)
	if err != nil {
		return s, nil, err
	}
	s = starterOf(os.Getpid(), processOf)
	return s, s.among(t.PIDs, processOf), nil
}

func post(ctx context.Context, q question, daemon *http.Client) (t told, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return t, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon"+Path,
		bytes.NewReader(body))
	if err != nil {
		return t, err
	}
	answer, err := daemon.Do(r)
	if err != nil {
		// without the URL
		return t, fmt.Errorf("the gateway does not say what has changed: %w", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxTold)).Decode(&t); err != nil ||
		answer.StatusCode != http.StatusOK {
		return t, fmt.Errorf(
			"the gateway does not say what has changed: it answers %.80q; restart the agents with "+
				"one version", answer.Status)
	}
	return t, nil
}

// Agents are the agents that hooks can ask for, by the pid of their pipe. The zero value is empty.
type Agents struct {
	mu    sync.Mutex
	byPID map[int]*gateway.Agent
}

// Add registers an agent until remove is called.
func (a *Agents) Add(pid int, agent *gateway.Agent) (remove func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byPID == nil {
		a.byPID = map[int]*gateway.Agent{}
	}
	a.byPID[pid] = agent
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.byPID[pid] == agent {
			delete(a.byPID, pid)
		}
	}
}

// of returns the agent of a pipe's pid, or nil, and the pids of all pipes.
func (a *Agents) of(pid int) (agent *gateway.Agent, all []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byPID[pid], slices.Sorted(maps.Keys(a.byPID))
}

// Handler answers a hook for a registered agent, otherwise for a conversation, or with the list of
// agents.
func (a *Agents) Handler(g *gateway.Gateway) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		var q question
		if r.Method != http.MethodPost ||
			json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAsk)).Decode(&q) != nil {
			http.Error(w, "this is no question of a hook", http.StatusBadRequest)
			return
		}
		t, err := a.answer(ctx, g, q)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(t) // the client may have gone
	})
}

func (a *Agents) answer(ctx context.Context, g *gateway.Gateway, q question) (t told, err error) {
	agent, pids := a.of(q.PID)
	switch {
	case q.PID == 0 && q.Session == "":
		t.PIDs = pids
	case agent == nil && q.Session == "":
		err = errors.New("the agent has ended")
	case agent == nil:
		t.Text, err = g.Changes(ctx, q.Ask)
	case q.Changed != nil:
		t.URIs = agent.Unknown(q.Changed)
	default:
		t.Text, err = agent.Changes(ctx, q.Ask)
	}
	return t, err
}
