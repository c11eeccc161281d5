package socket

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/seats"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
)

// frontOrigin is the origin in the hello of the extension's connection that reports the tab in
// front of the user. It is no page's origin, and only the extension's hello may have it.
const frontOrigin = "pagewire://front"

// A front is that connection: a Page whose frames after the hello are reports.
type front struct {
	g       *gateway.Gateway
	conn    *wsconn.Conn
	browser gateway.PageInfo // without its tabs
	greeted bool
	last    string // the key of the tab that it reported last
	end     func() // from then on the browser reports no tabs
}

// A report names the tab in front. URL is "" if the user has not allowed the site. Origin is "" if
// the tab shows no page of the web.
type report struct {
	Focused     bool // the user looks at the browser now
	Tab, Window string
	Origin      string
	Title, URL  string
}

// Receive takes a report, of 64 KiB at most.
func (f *front) Receive(frame []byte) error {
	if !f.greeted {
		f.greeted = true
		return nil
	}
	var r report
	var err error
	switch {
	case len(frame) > maxHello:
		err = fmt.Errorf("a report of the tab in front has %d bytes, and %d at most", len(frame),
			maxHello)
	case json.Unmarshal(frame, &r) != nil || !seats.IsNamed(r.Tab, "") || r.Window != "" &&
		!seats.IsNamed(r.Window, ""):
		err = errors.New("a report of the tab in front names its tab and its window, each as a " +
			"hello does")
	case r.Origin != "" && !strings.HasPrefix(r.Origin, "http") || r.URL != "" &&
		!strings.HasPrefix(r.URL, r.Origin+"/"):
		err = errors.New("a report of the tab in front has an origin of no web page, or an URL " +
			"of another origin")
	case !isWebOrigin(r.Origin):
		// No page of the web here: browsers accept hosts that Go does not, such as a{b.
		r.Origin, r.Title, r.URL = "", "", ""
	}
	if err != nil {
		go f.Refuse(err.Error()) // not here: Refuse waits for the reader
		return err
	}
	info, before := f.browser, f.last
	f.last = tabKey(r.Origin, r.Tab)
	info.Tab, info.Window, info.Origin = f.last, r.Window, r.Origin
	info.Title, info.URL = r.Title, r.URL
	f.g.Front(info, r.Focused, before)
	return nil
}

func (f *front) Refuse(reason string) { f.conn.Refuse(websocket.StatusPolicyViolation, reason) }

func (f *front) Lost(error) {
	f.g.Behind(f.last)
	f.end()
}

func isWebOrigin(name string) bool {
	u, err := url.Parse(name)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") &&
		u.Scheme+"://"+u.Host == name
}

func tabKey(origin, tab string) string { return "page " + origin + " " + tab }
