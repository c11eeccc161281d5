package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"
)

// Hint adds to an error what to do about it.
func Hint(err error, remedy string) error { return hintError{err, remedy} }

// refusals are reasons for which a system refuses a file, and what to do about each.
var refusals = []struct {
	is error
	do string
}{
	{syscall.ENOSPC, "free space on that disk"},
	{syscall.EDQUOT, "free some of this user's space"},
	{syscall.EROFS, "make that disk writable"},
	{fs.ErrPermission, "run this as the owner"},
}

// Remedy returns the sentence of Hint, or "" if the error has none. To a sentence that does not say
// what to do, such as "nothing was written", it adds what helps if the system refused a file.
func Remedy(err error) string {
	var hint hintError
	errors.As(err, &hint)
	for _, r := range refusals {
		if errors.Is(err, r.is) && !strings.Contains(hint.remedy, ": ") {
			return strings.TrimPrefix(hint.remedy+": "+r.do+", and try again", ": ")
		}
	}
	return hint.remedy
}

type hintError struct {
	error
	remedy string
}

func (e hintError) Unwrap() error { return e.error }

// Interruptible runs a function that reads and writes files. It returns at most one second after
// the end of ctx, even if the system still waits for a file, which can be on the other side of a
// network.
func Interruptible(ctx context.Context, run func() error) error {
	over, hangs := make(chan error, 1), make(chan struct{})
	go func() { over <- run() }()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, func() { close(hangs) }) })()
	select {
	case err := <-over:
		return err
	case <-hangs:
		return Hint(errors.New("interrupted: the system has not answered for a file"),
			"look whether the disk or the network that it is on hangs")
	}
}
