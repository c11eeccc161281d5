//go:build !js

// Package keeper is the process that has a launched browser, and what gateways need to find and use it.
//
// A browser that listens on a TCP port is open to every user of the machine. Ours takes its commands on a pipe, and
// ends with it. But a gateway may end before its browser, while other gateways still use that browser. So a small
// process, the keeper, holds the pipe and offers it on a socket in the directory that this user's processes share
// (package userdir). Every gateway holds a connection to it. The keeper ends the browser when the last of them has
// gone. If that one was killed, the keeper waits half a second for a successor. The hub also speaks with the
// browser, as a client. Others may do so too, each as if it were alone (relay.go).
//
// The keeper belongs to no terminal and has a process group of its own. It writes to nothing that may have no
// reader. It makes the browser's profile and removes it, that directory and no other (profile.go). If the keeper is
// killed, the browser ends with the pipe, and the next keeper removes the profile.
//
// Gateways name a browser to each other by the name of its keeper. That name leads to a socket in a directory of
// this user, and to nothing else. The keeper never removes, runs or writes to a thing that somebody has named to it,
// and never keeps a browser that nobody uses.
package keeper

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

const (
	// graceTime is how long a browser waits for a gateway when the last one was killed: the next hub takes 60 ms.
	graceTime = 500 * time.Millisecond
	// startTime is how long a browser may take until it answers. Ours takes 0.3 s, an update's first start several.
	startTime = 30 * time.Second
	// closeTime is how long it may take to close, which takes 0.1 s.
	closeTime = 2 * time.Second
	// listenTime is how long it may take to listen on its DebugPort when it answers already.
	listenTime = 5 * time.Second
	// helloTime is how long who connects may be silent.
	helloTime = 5 * time.Second
	// tellTime is how long a gateway may take to take a note.
	tellTime = 100 * time.Millisecond
	// maxConnections bounds what is connected: each gateway of a machine, and the hub once more.
	maxConnections = 1024
)

const namePrefix = "browser-"

var namePattern = regexp.MustCompile(`^` + namePrefix + `[a-z2-7]{12}$`)

// ValidName reports whether a text has the form of a keeper's name.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// A keeper is the process.
type keeper struct {
	o        options
	profile  *profile
	browser  *browser.Piped
	relay    *relay
	over     chan struct{} // closed when the relay has ended
	dir      *userdir.Dir
	name     string
	alone    string // why there is no socket
	listener net.Listener

	mu          sync.Mutex
	gateways    map[io.WriteCloser]bool // those who hear notes; false for one that leaves, and was the last
	connections int
	left        bool          // who has gone last has said so
	changed     chan struct{} // has a value when one of these has changed
}

// Main is the keeper's process: Launch starts it, with pipes as standard input and output. It returns the exit status.
func Main(in, out *os.File) int {
	// A closed terminal, a signal to a group, a gateway that reads no more: none of them ends a browser.
	// They are taken, and not ignored: that the browser would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	os.Chdir("/") // where it was started may be to be removed, or unmounted
	k := &keeper{
		over: make(chan struct{}), gateways: map[io.WriteCloser]bool{out: true}, changed: make(chan struct{}, 1),
	}
	said := newFrames(in, maxFirst)
	if err := readFrame(said, &k.o); err != nil {
		return 1 // who has started this is gone
	}
	go k.hear(out, said)
	url, err := k.start(end)
	if err != nil {
		k.leaveSocket()
		k.endBrowser()
		writeFrame(out, started{Failed: err.Error()})
		k.clean()
		return 1
	}
	if k.listener == nil {
		go k.serveAlone()
	} else {
		go k.accept()
	}
	writeFrame(out, started{Name: k.name, Alone: k.alone, URL: url})
	go k.sweep()
	how := k.wait(end, nil)
	k.leaveSocket()
	k.endBrowser()
	k.tell(note{Ended: how})
	k.clean()
	return 0
}

// start starts the browser, and returns when it can be used.
func (k *keeper) start(end <-chan os.Signal) (url string, err error) {
	if k.o.Version != version {
		return "", errors.New(otherVersion(version, k.o.Version))
	}
	if !k.o.Alone {
		k.listen()
	}
	if k.profile, err = newProfile(); err != nil {
		return "", err
	}
	adopt()
	o := browser.StartOptions{
		Options: browser.Options{Window: k.o.Window, Flags: k.o.Flags}, Open: k.o.Open,
		Profile: k.profile.path, DebugPort: k.o.DebugPort,
	}
	if k.browser, err = browser.StartPiped(o, k.profile.mark); err != nil {
		return "", err
	}
	k.relay = newRelay(k.browser.From, k.browser.To)
	go func() {
		defer close(k.over)
		k.relay.read()
	}()
	limit := time.AfterFunc(startTime, k.browser.Kill)
	defer limit.Stop()
	if ended := k.wait(end, k.relay.ready); ended != "" {
		return "", fmt.Errorf("the browser has ended, or not answered within %v: %s", startTime, k.browser.Said())
	}
	for i, url := range k.o.Open {
		if i == 0 {
			continue // the browser's command line has it; without a window it takes one there
		}
		if _, err := k.relay.call("Target.createTarget", map[string]string{"url": url}); err != nil {
			return "", fmt.Errorf("open %s: %w", url, err)
		}
	}
	if k.o.DebugPort == "" {
		return "", nil
	}
	select {
	case url = <-k.browser.Listens():
	case <-time.After(listenTime):
	}
	if url == "" {
		return "", fmt.Errorf("the browser does not listen on port %s: %s", k.o.DebugPort, k.browser.Said())
	}
	return url, nil
}

// listen makes the socket. Where that is not possible there is still the connection that this process was started with.
func (k *keeper) listen() {
	name := namePrefix + strings.ToLower(rand.Text()[:12])
	dir, err := userdir.Open(k.o.Hub, nil)
	if err != nil {
		k.alone = err.Error()
		return
	}
	listener, err := dir.Listen(name)
	if err != nil {
		k.alone = err.Error()
		return
	}
	k.dir, k.name, k.listener = dir, name, listener
}

// leaveSocket removes the socket, so that nobody else comes.
func (k *keeper) leaveSocket() {
	if k.listener == nil {
		return
	}
	k.listener.Close()
	if lock, err := k.dir.TryLock(k.name + ".lock"); err == nil {
		lock.Remove()
	}
}

// wait waits for the end, and says which it is, or for until, and returns "".
func (k *keeper) wait(end <-chan os.Signal, until <-chan struct{}) Ending {
	var grace <-chan time.Time
	for {
		held, left := k.held()
		switch {
		case held:
			grace = nil
		case left:
			return Closed
		case grace == nil:
			grace = time.After(graceTime)
		}
		select {
		case <-until:
			return ""
		case <-k.changed:
		case <-grace:
			return Closed
		case <-end:
			return Closed
		case <-k.over:
			select {
			case <-k.browser.Done():
			case <-time.After(closeTime):
				k.browser.Kill()
				<-k.browser.Done()
			}
			if k.browser.Crashed() {
				return Crashed
			}
			return Closed
		}
	}
}

// endBrowser ends the browser, in order where it still hears.
func (k *keeper) endBrowser() {
	if k.browser == nil {
		return
	}
	go k.relay.call("Browser.close", struct{}{})
	select {
	case <-k.browser.Done():
	case <-time.After(closeTime):
		k.browser.Kill()
		<-k.browser.Done()
	}
	k.browser.Close()
	reap()
}

// clean removes what is left of the browser.
func (k *keeper) clean() {
	if k.profile == nil {
		return
	}
	if err := k.profile.remove(); err != nil {
		k.tell(note{Says: err.Error()})
	}
}

// sweep removes what killed keepers have left.
func (k *keeper) sweep() {
	for _, err := range sweep() {
		k.tell(note{Says: err.Error()})
	}
}

// tell tells all gateways.
func (k *keeper) tell(n note) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for w := range k.gateways {
		if c, ok := w.(net.Conn); ok {
			c.SetWriteDeadline(time.Now().Add(tellTime)) // standard output is a pipe, which takes as much as this
		}
		writeFrame(w, n)
	}
}

// comes notes a gateway. Who was about to be the last may go.
func (k *keeper) comes(w io.WriteCloser) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for other, here := range k.gateways {
		if !here {
			delete(k.gateways, other)
			other.Close()
		}
	}
	k.gateways[w] = true
	k.signal()
}

// goes notes the end of a gateway. One that has said that it leaves, and is the last, hears how the browser ends.
func (k *keeper) goes(w io.WriteCloser, left bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.gateways, w)
	k.left = left
	if left && !slices.Contains(slices.Collect(maps.Values(k.gateways)), true) {
		k.gateways[w] = false
	} else {
		w.Close()
	}
	k.signal()
}

func (k *keeper) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// held reports whether a gateway is there, and whether the last one that was has said that it leaves.
func (k *keeper) held() (held, left bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(k.gateways)), true), k.left
}

// hear is the life of a gateway's connection.
func (k *keeper) hear(w io.WriteCloser, said *frames) {
	said.limit = maxSaid
	for {
		var l leave
		if readFrame(said, &l) != nil || l.Leave {
			k.goes(w, l.Leave)
			return
		}
	}
}

// accept takes in who connects, until the socket is closed.
func (k *keeper) accept() {
	for {
		conn, err := k.listener.Accept()
		if err != nil {
			return
		}
		k.mu.Lock()
		full := k.connections == maxConnections
		if !full {
			k.connections++
		}
		k.mu.Unlock()
		if full {
			conn.Close()
			continue
		}
		go func() {
			k.welcome(conn)
			k.mu.Lock()
			k.connections--
			k.mu.Unlock()
		}()
	}
}

// welcome is the life of a connection.
func (k *keeper) welcome(conn net.Conn) {
	conn.SetReadDeadline(time.Now().Add(helloTime))
	said := newFrames(conn, maxSaid)
	var h hello
	if err := readFrame(said, &h); err != nil {
		conn.Close()
		return
	}
	conn.SetReadDeadline(time.Time{})
	w := welcome{Keeper: version, Inject: k.o.Inject}
	switch {
	case h.Keeper != version:
		w.Refused = otherVersion(version, h.Keeper)
	case h.As != asGateway && h.As != asClient:
		w.Refused = fmt.Sprintf("a keeper serves gateways and clients, and not %.20q", h.As)
	case h.As == asGateway:
		k.comes(conn) // before it is told so
	}
	conn.SetWriteDeadline(time.Now().Add(helloTime))
	err := writeFrame(conn, w)
	conn.SetWriteDeadline(time.Time{})
	switch {
	case w.Refused != "":
		conn.Close()
	case h.As == asGateway:
		k.hear(conn, said) // also where it has not heard that: it ends at once then
	case err != nil:
		conn.Close()
	default:
		k.relay.serve(conn, said)
	}
}

// serveAlone serves the one client that there can be, without a socket. The browser ends with it.
func (k *keeper) serveAlone() {
	file := os.NewFile(aloneFD, "client")
	conn, err := net.FileConn(file)
	file.Close()
	if err == nil {
		err = k.relay.serve(conn, newFrames(conn, maxFromClient))
	}
	k.tell(note{Says: "the launched browser ends: its gateway is cut off: " + err.Error()})
	k.browser.Kill()
}
