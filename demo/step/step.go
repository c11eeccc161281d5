// Package step tells a demo's story, which ends at the first step that does not happen.
//
// It never goes on after a failed step, and knows nothing about the stories.
package step

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// A failure is the panic of a step that did not happen.
type failure struct{ error }

// Tell tells a story, and returns the error of the step that did not happen. The story runs in the
// caller's goroutine, and its deferred calls run in any case.
func Tell(story func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	story()
	return nil
}

// Check ends the story if err is not nil. The words before say what failed.
func Check(err error, before ...any) {
	if err == nil {
		return
	}
	if len(before) > 0 {
		err = fmt.Errorf("%s: %w", fmt.Sprint(before...), err)
	}
	panic(failure{err})
}

// Must returns a value, or ends the story.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Eventually waits until something is so. It ends the story after a limit.
func Eventually(what string, limit time.Duration, ok func() bool) {
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			Check(fmt.Errorf("after %v still not so: %s", limit, what))
		}
	}
}

// FreeAddrs returns addresses of this machine at which nothing listens.
func FreeAddrs(count int) (list []string) {
	for range count {
		l := Must(net.Listen("tcp", "127.0.0.1:0"))
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list
}

// Line writes a line of the transcript: the actor, and the event.
func Line(out io.Writer, who, format string, args ...any) {
	line := fmt.Sprintf("%-8s %s", who, fmt.Sprintf(format, args...))
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}
