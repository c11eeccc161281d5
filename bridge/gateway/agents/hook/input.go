//go:build !js

package hook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
)

const (
	// maxInput is how long what a hook is given may be, in bytes: a prompt is in it, or a tool's result.
	maxInput = 4 << 20
	// maxSession is how long the name of a conversation may be.
	maxSession = 200
)

// An Input is what a program tells its hook, as far as it is of use.
type Input struct {
	// Session is what the program calls the conversation, or "".
	Session string
	// Event is what has happened, by the program's name of it, or "".
	Event string
}

// ErrInput is what Read fails with.
var ErrInput = errors.New("the input of the hook is not a JSON object of at most 4 MiB")

// Read reads a hook's standard input: a JSON object, which all programs write, and some leave open behind it. It fails
// with ErrInput, or when ctx ends.
func Read(ctx context.Context, from io.Reader) (Input, error) {
	type result struct {
		in  Input
		err error
	}
	done := make(chan result, 1)
	go func() {
		in, err := decode(io.LimitReader(from, maxInput))
		if err != nil {
			// Who still writes would be told that nobody reads, and may end of that.
			_, _ = io.Copy(io.Discard, from)
		}
		done <- result{in, err}
	}()
	select {
	case r := <-done:
		return r.in, r.err
	case <-ctx.Done():
		return Input{}, ctx.Err()
	}
}

func decode(from io.Reader) (Input, error) {
	var in *struct {
		Session string `json:"session_id"`
		ID      string `json:"sessionId"` // Copilot's
		Event   string `json:"hook_event_name"`
	}
	if err := json.NewDecoder(from).Decode(&in); err != nil || in == nil {
		return Input{}, ErrInput
	}
	session := in.Session
	if session == "" {
		session = in.ID
	}
	if len(session) > maxSession {
		return Input{}, ErrInput
	}
	return Input{session, in.Event}, nil
}
