package uplink

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// maxTicket bounds a ticket, in bytes, as a node does, and commandTimeout the command that gives one.
const (
	maxTicket      = 8 << 10
	commandTimeout = 10 * time.Second
)

// A ticket is one that pages of an origin share.
type ticket struct {
	text  string
	renew time.Time
}

// ticket returns a ticket for pages of an origin, and when it is to be replaced.
func (n *Node) ticket(ctx context.Context, origin string) (string, time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock() // pages that come together wait for one ticket
	if t := n.tickets[origin]; time.Until(t.renew) > 0 {
		return t.text, time.Until(t.renew), nil
	}
	text, err := n.o.Ticket(ctx, origin)
	if err != nil {
		return "", 0, fmt.Errorf("there is no ticket: %w", err)
	}
	claims, err := claimsOf(text)
	if err != nil {
		return "", 0, err
	}
	left := max(n.o.renewAtLeast, time.Duration(float64(time.Until(time.Unix(claims.Exp, 0)))*renewAfter))
	n.tickets[origin] = ticket{text, time.Now().Add(left)}
	return text, left, nil
}

type claims struct {
	Origin string
	Exp    int64
}

// claimsOf reads what a ticket says. The node verifies it.
func claimsOf(text string) (c claims, err error) {
	parts := strings.Split(text, ".")
	if len(parts) == 3 && len(text) <= maxTicket {
		var payload []byte
		if payload, err = base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			err = json.Unmarshal(payload, &c)
		}
	}
	if len(parts) != 3 || len(text) > maxTicket || err != nil {
		return c, errors.New("what is given as a ticket is none: it is to be a JWT of 8 KiB at most")
	}
	return c, nil
}

// TicketCommand has a command print each ticket. The page's origin is its last argument. No shell reads the line.
func TicketCommand(line string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, origin string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		words := append(strings.Fields(line), origin)
		out, err := exec.CommandContext(ctx, words[0], words[1:]...).Output()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			err = fmt.Errorf("%w: %.200q", err, failed.Stderr)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", words[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
}

// TicketFile takes tickets from a file, one a line: that whose claim origin is the page's. The file is read for each.
// Only its user may be able to read it.
func TicketFile(path string) func(context.Context, string) (string, error) {
	return func(_ context.Context, origin string) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		// Windows has no such bits.
		if info, err := os.Stat(path); err == nil && info.Mode()&0o077 != 0 && runtime.GOOS != "windows" {
			return "", fmt.Errorf("others on this machine may read %s: chmod 600 %[1]s", path)
		}
		for _, line := range strings.Fields(string(text)) {
			if c, err := claimsOf(line); err == nil && c.Origin == origin {
				return line, nil
			}
		}
		return "", fmt.Errorf("%s has no ticket whose claim origin is %s: it is to have one a line", path, origin)
	}
}
