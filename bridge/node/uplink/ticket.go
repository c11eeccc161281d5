package uplink

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

const (
	// maxTicket bounds a ticket, in bytes, as a node does, and commandTimeout the command that
	// gives one.
	maxTicket      = 8 << 10
	commandTimeout = 10 * time.Second
	// renewAfter is the part of a ticket's life after which it is replaced, and leastPause the
	// least time until then.
	renewAfter, leastPause = 0.7, 5 * time.Second
)

// tickets are the tickets for the pages of each origin.
type tickets struct {
	ctx     context.Context
	give    func(ctx context.Context, origin string) (string, error)
	atLeast time.Duration // until a ticket or a failure is replaced

	mu sync.Mutex // guards of
	of map[string]*ticket
}

// A ticket is shared by the pages of an origin. err is the reason if there is no text.
type ticket struct {
	// Full while one page asks for a ticket; the others wait. It guards the rest.
	asking     chan struct{}
	text       string
	err        error
	got, renew time.Time
}

// lock locks the ticket of an origin until done is called.
func (s *tickets) lock(origin string) (t *ticket, done func()) {
	s.mu.Lock()
	if t = s.of[origin]; t == nil {
		t = &ticket{asking: make(chan struct{}, 1)}
		s.of[origin] = t
	}
	s.mu.Unlock()
	t.asking <- struct{}{}
	return t, func() { <-t.asking }
}

// get returns a ticket for pages of an origin, and the time until it must be replaced. A failure is
// kept for atLeast, so that hundreds of pages do not run the command more often.
func (s *tickets) get(origin string) (string, time.Duration, error) {
	t, done := s.lock(origin)
	defer done()
	if time.Until(t.renew) <= 0 {
		left := time.Duration(0)
		if t.text, t.err = s.give(s.ctx, origin); t.err != nil {
			t.err = fmt.Errorf("there is no ticket: %w", t.err)
		} else if c, err := claimsOf(t.text); err != nil {
			t.err = err
		} else {
			left = time.Duration(float64(time.Until(time.Unix(int64(c.Exp), 0))) * renewAfter)
		}
		t.got = time.Now()
		t.renew = t.got.Add(max(s.atLeast, left))
	}
	return t.text, time.Until(t.renew), t.err
}

// refused sets an early time for replacing an origin's ticket, because the node has refused it.
func (s *tickets) refused(origin string) {
	t, done := s.lock(origin)
	defer done()
	t.renew = t.got.Add(s.atLeast)
}

type claims struct {
	Origin string
	Exp    float64 // JWT's NumericDate may have a fraction
}

// claimsOf reads what a ticket says. The node verifies it.
func claimsOf(text string) (c claims, err error) {
	if parts := strings.Split(text, "."); len(parts) == 3 && len(text) <= maxTicket {
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(payload, &c) == nil {
			return c, nil
		}
	}
	return c, errors.New("what is given as a ticket is none: it is to be a JWT of 8 KiB at most")
}

// TicketCommand gets each ticket from a command that prints it. The page's origin is the command's
// last argument. No shell reads the line.
func TicketCommand(line string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, origin string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		words := append(strings.Fields(line), origin)
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		// A process that it leaves running, such as a key agent, may hold its output open.
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			err = fmt.Errorf("%w: %.200q", err, failed.Stderr)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", words[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
}

// TicketFile takes tickets from a file, one a line. It chooses the ticket whose claim origin is the
// page's; of several, the one that ends last. The file is read each time. No other user may be able
// to read it.
func TicketFile(path string) func(context.Context, string) (string, error) {
	return func(_ context.Context, origin string) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(path); err == nil && userdir.Permits(info.Mode(), 0o077) {
			return "", fmt.Errorf("others on this machine may read %s: chmod 600 %[1]s", path)
		}
		found, last := "", 0.0
		for _, line := range strings.Fields(strings.TrimPrefix(string(text), "\ufeff")) {
			if c, err := claimsOf(line); err == nil && c.Origin == origin && c.Exp > last {
				found, last = line, c.Exp
			}
		}
		if found != "" {
			return found, nil
		}
		return "", fmt.Errorf("%s has no ticket whose claim origin is %s: it is to have one a line",
			path, origin)
	}
}
