//go:build !js

// Package hook lets an agent program's hook ask what has changed in the open pages since its agent was told last:
// pagewire changes.
//
// The program has started a `pagewire serve`, which keeps the record of what its agent has seen. The program also
// starts the hook. A shell, or npx, may be in between. So each serve with an agent listens on a socket of its own in
// the user's directory (package userdir), named by its process id. The hook asks the serve that descends from the
// process which started the hook (ancestry.go). If there is none, or more than one, it asks the hub for the record
// of the conversation, which the program names.
//
// It never waits for longer than its context, never sends anything to a process of another user, and never deletes a
// socket but its own and those whose lock says that their process is dead.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

const (
	// Path is where hooks ask, at an agent's socket and at the hub's.
	Path = "/changes"
	// maxAsk and maxTold bound what is asked and what is answered, in bytes.
	maxAsk, maxTold = 256 << 10, 256 << 10
	// patience is how long an answer may take: a hook has given up by then.
	patience = time.Second
)

// A question is a hook's, or with Changed one of what wakes an agent: which of these URIs are news to it.
type question struct {
	gateway.Ask
	Changed []string `json:"changed,omitzero"`
}

// told is an answer.
type told struct {
	Text string   `json:"text,omitempty"`
	URIs []string `json:"uris,omitempty"`
}

var socketShape = regexp.MustCompile(`^agent-([1-9][0-9]{0,9})(\.lock)?$`)

func socketOf(pid int) string { return "agent-" + strconv.Itoa(pid) }

// Changes asks what has changed since the agent was told last that has started this process; "" is nothing. addr is the
// hub's. q.Session is what the agent's program calls the conversation, or "". It fails with hub.ErrNoHub where neither
// the agent nor a hub is found, with ctx's error, or with a sentence.
func Changes(ctx context.Context, addr string, q gateway.Ask) (string, error) {
	addr = cmp.Or(addr, hub.DefaultAddr)
	dir, starter, found, err := serves(addr)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if len(found) == 1 || len(found) > 1 && q.Session == "" {
		t, err := post(ctx, question{Ask: q}, agentAt(dir, found[0]))
		if !errors.Is(err, userdir.ErrNobody) {
			return t.Text, err
		}
	}
	// The hub knows no processes: what it takes for a conversation is one that the program names, or all that the
	// process says.
	if q.Session != "" {
		q.Session = "session " + q.Session
	} else {
		q.Session = "process " + starter.String()
	}
	t, err := post(ctx, question{Ask: q}, func(ctx context.Context) (net.Conn, error) {
		c, _, err := hub.Connect(ctx, addr)
		return c, err
	})
	return t.Text, err
}

// ErrNoAgent is what Unknown fails with where it is not known which agent has started this process.
var ErrNoAgent = errors.New("this process was not started by an agent with exactly one pagewire serve")

// Unknown asks, of URIs that have changed, which of them the agent that has started this process was not told of, as
// gateway.Gateway.Unknown does. It fails with ErrNoAgent, with ctx's error, or with a sentence.
func Unknown(ctx context.Context, addr string, uris []string) ([]string, error) {
	dir, _, found, err := serves(cmp.Or(addr, hub.DefaultAddr))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if len(found) != 1 {
		return nil, ErrNoAgent
	}
	t, err := post(ctx, question{Changed: append([]string{}, uris...)}, agentAt(dir, found[0]))
	return t.URIs, err
}

// agentAt connects to the socket of an agent's serve.
func agentAt(dir *userdir.Dir, pid int) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return dir.Dial(ctx, socketOf(pid)) }
}

// serves finds who has started this process, and the serves of that among those in the directory of a hub's address,
// which is to be closed.
func serves(addr string) (dir *userdir.Dir, s starter, found []int, err error) {
	if dir, err = userdir.Open(addr, nil); err != nil {
		return nil, s, nil, err
	}
	names, err := dir.Names()
	if err != nil {
		dir.Close()
		return nil, s, nil, err
	}
	var all []int
	for _, name := range names {
		if m := socketShape.FindStringSubmatch(name); m != nil && m[2] == "" {
			pid, _ := strconv.Atoi(m[1]) // it has 10 digits at most
			all = append(all, pid)
		}
	}
	s = starterOf(os.Getpid(), look)
	return dir, s, s.among(all, look), nil
}

// post asks over a connection that dial makes.
func post(ctx context.Context, q question, dial func(context.Context) (net.Conn, error)) (t told, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return t, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+Path, bytes.NewReader(body))
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

// Handler answers what the hub is asked: of conversations, and never of its own agent.
func Handler(g *gateway.Gateway) http.Handler {
	return handler(g, func(q *question) bool { return q.Session != "" && q.Changed == nil })
}

// handler answers the questions that admit lets through.
func handler(g *gateway.Gateway, admit func(*question) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		var q question
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAsk)).Decode(&q); err != nil || !admit(&q) {
			http.Error(w, "this is no question of a hook", http.StatusBadRequest)
			return
		}
		var t told
		var err error
		if q.Changed != nil {
			t.URIs = g.Unknown(q.Changed)
		} else if t.Text, err = g.Changes(ctx, q.Ask); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(t) // who asked may have gone
	})
}

const (
	// heldTimes and heldPause are for a serve that has the process id of a dead one, whose socket another is just
	// removing.
	heldTimes, heldPause = 20, 50 * time.Millisecond
	shutdownTimeout      = 500 * time.Millisecond
)

// Serve answers the hooks of the agent that has started this process until ctx ends. Where it cannot, hooks go to the
// hub; log says why.
func Serve(ctx context.Context, addr string, g *gateway.Gateway, log *slog.Logger) {
	if err := serve(ctx, addr, g, log); err != nil {
		log.Warn("hooks of this agent cannot ask here: it may be told the same by hooks and by reminders", "reason", err)
	}
}

func serve(ctx context.Context, addr string, g *gateway.Gateway, log *slog.Logger) error {
	dir, err := userdir.Open(addr, log)
	if err != nil {
		return err
	}
	defer dir.Close()
	tidy(dir)
	l, err := dir.Listen(socketOf(os.Getpid()))
	for range heldTimes {
		if !errors.Is(err, userdir.ErrHeld) {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(heldPause):
		}
		l, err = dir.Listen(socketOf(os.Getpid()))
	}
	if err != nil {
		return err
	}
	defer l.Remove()
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, handler(g, func(q *question) bool {
		q.Session = ""
		return true
	}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() {
		l.Remove() // before the server closes it, and leaves its lock
		limited, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		if server.Shutdown(limited) != nil {
			server.Close()
		}
	})
	defer stop()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// tidy removes what serves have left that were killed.
func tidy(dir *userdir.Dir) {
	names, err := dir.Names()
	if err != nil {
		return
	}
	own := socketOf(os.Getpid())
	for _, name := range names {
		m := socketShape.FindStringSubmatch(name)
		if m == nil || "agent-"+m[1] == own {
			continue
		}
		lock, err := dir.TryLock("agent-" + m[1] + ".lock")
		if err != nil {
			continue // it lives, or is nothing of ours
		}
		_ = dir.Remove("agent-" + m[1]) // there may be none
		_ = lock.Remove()               // the next time, if not now
	}
}
