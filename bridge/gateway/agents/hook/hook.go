//go:build !js

// Package hook lets an agent program's hook ask what has changed in the open pages since its agent was last told:
// pagewire changes.
//
// The program has started a `pagewire serve`. The daemon knows that process, and keeps the record of what its agent has
// seen. The program also starts the hook. A shell, or npx, may be in between. The hook asks for the agent whose process
// descends from the hook's starter (ancestry.go). If there is none, or more than one, it asks for the record of the
// conversation, which the program names.
//
// It never waits for longer than its context, and opens nothing.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
)

const (
	// Path is the path for hooks at the daemon's socket.
	Path = "/changes"
	// maxAsk and maxTold bound a question and its answer, in bytes.
	maxAsk, maxTold = 256 << 10, 256 << 10
	// patience is how long an answer may take: after that a hook has given up.
	patience = time.Second
)

// A question is a hook's. With Changed it asks which of these URIs are news to the agent, for a program that wakes it.
// Without an agent or a conversation it asks for the list of agents.
type question struct {
	gateway.Ask
	// PID is the process of the agent's pipe.
	PID     int      `json:"pid,omitempty"`
	Changed []string `json:"changed,omitzero"`
}

// told is an answer.
type told struct {
	Text string   `json:"text,omitempty"`
	URIs []string `json:"uris,omitempty"`
	// PIDs are the processes of all agents' pipes.
	PIDs []int `json:"pids,omitempty"`
}

// A Dial connects to the daemon, which serves Path.
type Dial func(context.Context) (net.Conn, error)

// Changes asks what has changed since the agent that started this process was last told; "" is nothing. q.Session is
// the program's name for the conversation, or "". It fails with dial's error, with ctx's error, or with a sentence.
func Changes(ctx context.Context, dial Dial, q gateway.Ask) (string, error) {
	s, found, err := pipes(ctx, dial)
	if err != nil {
		return "", err
	}
	ask := question{Ask: q}
	switch {
	case len(found) == 1 || len(found) > 1 && q.Session == "":
		ask.PID = found[0]
	case q.Session != "":
		ask.Session = "session " + q.Session
	default:
		ask.Session = "process " + s.String() // one conversation for all that the process says
	}
	t, err := post(ctx, ask, dial)
	return t.Text, err
}

// ErrNoAgent is the error of Unknown if the agent that started this process is not known.
var ErrNoAgent = errors.New("this process was not started by an agent with exactly one pagewire serve")

// Unknown asks which of some changed URIs are news to the agent that started this process, as gateway.Agent.Unknown
// does. It fails with ErrNoAgent, with dial's error, with ctx's error, or with a sentence.
func Unknown(ctx context.Context, dial Dial, uris []string) ([]string, error) {
	_, found, err := pipes(ctx, dial)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, ErrNoAgent
	}
	t, err := post(ctx, question{PID: found[0], Changed: append([]string{}, uris...)}, dial)
	return t.URIs, err
}

// pipes finds the process that started this one, and the pipes of its agents.
func pipes(ctx context.Context, dial Dial) (s starter, found []int, err error) {
	t, err := post(ctx, question{}, dial)
	if err != nil {
		return s, nil, err
	}
	s = starterOf(os.Getpid(), look)
	return s, s.among(t.PIDs, look), nil
}

// post asks over a connection that dial makes.
func post(ctx context.Context, q question, dial Dial) (t told, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return t, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon"+Path, bytes.NewReader(body))
	if err != nil {
		return t, err
	}
	c, err := dial(ctx)
	if err != nil {
		return t, err
	}
	defer c.Close()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return c, nil },
	}}
	answer, err := client.Do(r)
	if err != nil {
		return t, fmt.Errorf("the gateway does not say what has changed: %w", err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxTold)).Decode(&t); err != nil ||
		answer.StatusCode != http.StatusOK {
		return t, fmt.Errorf("the gateway does not say what has changed: it answers %.80q; restart the agents with "+
			"one version", answer.Status)
	}
	return t, nil
}

// Agents are the agents of which hooks can ask, by the process of their pipe. The zero value has none.
type Agents struct {
	mu    sync.Mutex
	byPID map[int]*gateway.Agent
}

// Add registers an agent, until remove.
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

// of returns the agent of a process, or nil, and all processes.
func (a *Agents) of(pid int) (agent *gateway.Agent, all []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byPID[pid], slices.Sorted(maps.Keys(a.byPID))
}

// Handler answers hooks: for a registered agent, for a conversation, or with the list of agents.
func (a *Agents) Handler(g *gateway.Gateway) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		var q question
		if r.Method != http.MethodPost || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAsk)).Decode(&q) != nil {
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
