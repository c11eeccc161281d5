//go:build !js

package testkit

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
)

// roleEnv names the environment variable by which Main knows that the process is not to run tests.
const roleEnv = "PAGEWIRE_TESTKIT_ROLE"

// Main is called first by a TestMain whose tests use OtherUser: in the process of that other user it does what that is to
// do, and does not return.
func Main() {
	role := os.Getenv(roleEnv)
	if role == "" {
		return
	}
	if err := play(role, os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The roles of OtherUser.
const (
	// Dial connects to an address, and is nc: what comes in on standard input goes there, what comes from there goes out.
	Dial = "dial"
	// Squat listens at an address, says "listening" on a line of standard output, and writes there what each who connects sends.
	Squat = "squat"
	// Read writes the contents of the file at a path.
	Read = "read"
)

func play(role, at string, in io.Reader, out io.Writer) error {
	switch role {
	case Dial:
		c, err := net.Dial("tcp", at)
		if err != nil {
			return err
		}
		go io.Copy(c, in)
		_, err = io.Copy(out, c)
		return err
	case Squat:
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "listening")
		go func() { // it ends with its input
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go io.Copy(out, c)
			}
		}()
		_, err = io.Copy(io.Discard, in)
		return err
	case Read:
		f, err := os.Open(at)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, f)
		return err
	}
	return fmt.Errorf("testkit: no role %q", role)
}

// needsRoot skips a test that cannot become another user.
func needsRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can run a process of another user")
	}
}
