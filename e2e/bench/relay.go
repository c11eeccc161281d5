package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coder/websocket"
)

// A relay is the floor of a gateway for several agents: the agent's process and a socket to the
// page's owner copy bytes. The page answers. Its owner is in this process, which is no advantage,
// because this process waits meanwhile.

const (
	wsRelay      = "floor: relay to a WebSocket"
	cdpRelay     = "floor: relay to CDP"
	wsToolRelay  = wsRelay + " and executeTool"
	cdpToolRelay = cdpRelay + " and executeTool"
	relayPipe    = "relay-pipe" // the argument that makes this program the agent's process
)

var relays = []rival{
	{
		name: wsRelay, kind: floor, html: inline("relayed", "socket"),
		ready: relaysToSocket, read: readState, call: callState,
	},
	{
		name: cdpRelay, kind: floor, html: inline("relayed"),
		ready: relaysToCDP, read: readState, call: callState,
	},
	{
		name: wsToolRelay, kind: floor, native: true, tools: true,
		html:  inline("execute", "relayedtool", "socket"),
		ready: relaysToSocket, call: callState,
	},
	{
		name: cdpToolRelay, kind: floor, native: true, tools: true,
		html:  inline("execute", "relayedtool"),
		ready: relaysToCDP, call: callState,
	},
}

func relaysToSocket(ctx context.Context, r *rig) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.echo == nil {
		return errors.New("no page has connected")
	}
	return r.relay(ctx, func(line []byte) ([]byte, error) {
		err := r.echo.Write(context.Background(), websocket.MessageText, line)
		if err != nil {
			return nil, err
		}
		_, answer, err := r.echo.Read(context.Background())
		return answer, err
	})
}

func relaysToCDP(ctx context.Context, r *rig) error {
	if err := attachBare(ctx, r); err != nil {
		return err
	}
	return r.relay(ctx, func(line []byte) ([]byte, error) {
		var said struct{ Payload string }
		text, err := r.bare.run(context.Background(), string(line))
		if err == nil {
			err = json.Unmarshal([]byte(text), &said)
		}
		return []byte(said.Payload), err
	})
}

// relay starts the agent's process. pass hands a message of that to the page, and returns the
// page's answer.
func (r *rig) relay(ctx context.Context, pass func([]byte) ([]byte, error)) error {
	l, err := net.Listen("unix", filepath.Join(r.home, "relay"))
	if err != nil {
		return err
	}
	go func() {
		c, err := l.Accept()
		for lines := bufio.NewReader(c); err == nil; {
			var line []byte
			if line, err = lines.ReadBytes('\n'); err == nil {
				line, err = pass(line)
			}
			if err == nil {
				_, err = c.Write(append(line, '\n'))
			}
		}
	}()
	self, err := os.Executable()
	if err == nil {
		r.agent, err = startAgent(ctx, os.Environ(), self, relayPipe, l.Addr().String())
	}
	if err == nil {
		r.b.onClose(r.agent.close)
	}
	return err
}

// pipeTo is the agent's process. It reads standard input in Go's poller, as pagewire serve does.
func pipeTo(socket string) error {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	if err := syscall.SetNonblock(0, true); err != nil {
		return err
	}
	go io.Copy(os.Stdout, c)
	_, err = io.Copy(c, os.NewFile(0, "stdin"))
	return err
}
