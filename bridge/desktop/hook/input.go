package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
)

const (
	// maxInput bounds a hook's input, in bytes. The input contains a prompt, or a tool's result.
	maxInput = 4 << 20
	// maxSession bounds the name of a conversation, in bytes.
	maxSession = 200
)

// An Input has the members of a program's input to its hook that pagewire uses.
type Input struct {
	// Session is the program's name for the conversation, or "".
	Session string
	// Event is the program's name for the event, or "".
	Event string
	// Source is the program's word for how a session has begun, or "".
	Source string
}

// ErrInput is the error of Read for input that it does not accept.
var ErrInput = errors.New("the input of the hook is not a JSON object of at most 4 MiB")

// Read reads a hook's standard input, up to the end of its JSON object: some programs leave the
// input open after it. It fails with ErrInput, or with ctx's error.
func Read(ctx context.Context, from io.Reader) (Input, error) {
	type result struct {
		in  Input
		err error
	}
	done := make(chan result, 1)
	go func() {
		in, err := decode(io.LimitReader(from, maxInput))
		if err != nil {
			// Without this a program that still writes would get an error, and might end.
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
		Source  string `json:"source"`
	}
	text := bufio.NewReader(from)
	// PowerShell writes that mark before its text.
	if r, _, err := text.ReadRune(); err == nil && r != '\ufeff' {
		_ = text.UnreadRune() // it cannot fail after ReadRune
	}
	if err := json.NewDecoder(text).Decode(&in); err != nil || in == nil {
		return Input{}, ErrInput
	}
	session := in.Session
	if session == "" {
		session = in.ID
	}
	if len(session) > maxSession {
		return Input{}, ErrInput
	}
	return Input{session, in.Event, in.Source}, nil
}
