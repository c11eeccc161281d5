package socket

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// tabsOrigin is the origin in the hello of the extension's connection that counts open tabs. Only
// the extension's hello may have it.
const tabsOrigin = "pagewire://tabs"

// maxNamed bounds a frame of that connection: 200 titles and addresses of 300 characters.
const maxNamed = 1 << 20

// A counter is that connection: a Page whose frames after the hello are numbers of tabs that offer
// nothing, or, when the user asks for them, their titles and addresses. Neither is kept or logged.
type counter struct {
	conn    *wsconn.Conn
	browser gateway.PageInfo
	greeted bool
	send    func([]byte)
	count   func(n int, targets []string)
	end     func()

	mu    sync.Mutex
	asked []chan []gateway.PageInfo // questions without an answer: each has room for it
}

func newCounter(g *gateway.Gateway, conn *wsconn.Conn, browser gateway.PageInfo,
	send func([]byte)) *counter {
	c := &counter{conn: conn, browser: browser, send: send}
	c.count, c.end = g.CountTabs(c.name)
	return c
}

// A tabReport has a number, or names.
type tabReport struct {
	Count   int
	Targets []string
	Named   []struct{ Title, URL, Target string }
}

// Receive takes a report, of 1 MiB at most.
func (c *counter) Receive(frame []byte) error {
	if !c.greeted {
		c.greeted = true
		return nil
	}
	var r tabReport
	if len(frame) > maxNamed || json.Unmarshal(frame, &r) != nil || r.Count < 0 {
		err := errors.New("a report of open tabs has their number, or their titles and " +
			"addresses, in 1 MiB")
		go c.Refuse(err.Error()) // not here: Refuse waits for the reader
		return err
	}
	if r.Named == nil {
		c.count(r.Count, r.Targets)
		return nil
	}
	c.mu.Lock()
	asked := c.asked
	c.asked = nil
	c.mu.Unlock()
	var answer []gateway.PageInfo
	for _, tab := range r.Named {
		info := c.browser
		info.Origin, info.Title, info.URL = weborigin.Of(tab.URL), tab.Title, tab.URL
		if info.Target = tab.Target; strings.HasPrefix(info.Origin, "http") {
			answer = append(answer, info)
		}
	}
	for _, question := range asked {
		question <- answer
	}
	return nil
}

// name asks the extension which tabs offer nothing.
func (c *counter) name(ctx context.Context) []gateway.PageInfo {
	question := make(chan []gateway.PageInfo, 1)
	c.mu.Lock()
	c.asked = append(c.asked, question)
	c.mu.Unlock()
	c.send([]byte(`"name"`))
	select {
	case answer := <-question:
		return answer
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = slices.DeleteFunc(c.asked, func(q chan []gateway.PageInfo) bool {
		return q == question
	})
	return nil
}

func (c *counter) Refuse(reason string) { c.conn.Refuse(websocket.StatusPolicyViolation, reason) }

func (c *counter) Lost(error) { c.end() }
