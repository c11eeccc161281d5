//go:build unix

package testcmd

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// asTests makes a process of this binary play tests that have been started by nohup, and that start
// a program.
const asTests = "PAGEWIRE_TESTCMD"

func TestMain(m *testing.M) {
	if os.Getenv(asTests) == "" {
		os.Exit(m.Run())
	}
	cmd := Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(cmd.Process.Pid)
	go func() { fmt.Println(cmd.Wait()) }()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(lines.Text())
	}
	cmd.Process.Kill()
}

// The programs of tests that nohup has started do not end with the terminal. SIGHUP ends them all
// the same.
func TestProgramsUnderNohup(t *testing.T) {
	tests := Command("sh", "-c", `trap "" HUP; exec "$0"`, os.Args[0])
	tests.Env = append(os.Environ(), asTests+"=1")
	tests.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := tests.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := tests.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tests.Start(); err != nil {
		t.Fatal(err)
	}
	lines, program := bufio.NewScanner(out), 0
	next := func() string { lines.Scan(); return lines.Text() }
	if fmt.Sscan(next(), &program); program == 0 {
		t.Fatal("no program has been started")
	}
	// A terminal that is closed sends SIGHUP to the group of the tests.
	if group, err := syscall.Getpgid(program); err != nil || group == tests.Process.Pid {
		t.Errorf("the program is in the group %d of the tests: %v", group, err)
	}
	if err := syscall.Kill(-tests.Process.Pid, syscall.SIGHUP); err != nil {
		t.Error(err)
	}
	fmt.Fprintln(in, "still here")
	if got := next(); got != "still here" {
		t.Errorf("after the end of the terminal: %q", got)
	}
	if err := syscall.Kill(program, syscall.SIGHUP); err != nil {
		t.Error(err)
	}
	if got := next(); got != "signal: hangup" {
		t.Errorf("the program ends with %q", got)
	}
	in.Close()
	if err := tests.Wait(); err != nil {
		t.Error(err)
	}
}

// A child that is left behind with a program's output does not make its test wait for good.
func TestOutputThatIsLeftOpen(t *testing.T) {
	cmd := Command("sh", "-c", "sleep 600 & echo $!")
	cmd.WaitDelay /= 100
	out, err := cmd.Output()
	if !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("it ends with %v", err)
	}
	child := 0
	if fmt.Sscan(strings.TrimSpace(string(out)), &child); child == 0 {
		t.Fatalf("it has said %q", out)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
