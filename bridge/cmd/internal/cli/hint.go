package cli

import (
	"context"
	"errors"
	"time"
)

// Hint adds to an error what to do about it. Remedy is that sentence, or "".
func Hint(err error, remedy string) error { return hintError{err, remedy} }

// Remedy returns the sentence of Hint, or "" if the error has none.
func Remedy(err error) string {
	var hint hintError
	errors.As(err, &hint)
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
