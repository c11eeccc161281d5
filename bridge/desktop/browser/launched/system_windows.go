package launched

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
)

// give gives a browser its ends of the pipe, as chromedp does: a switch names the handles, which
// have the same values in the browser. Go passes no other handles on. The browser keeps no file
// open: its lock would stay with us.
func give(cmd *exec.Cmd, commands, answers, _ *os.File) {
	handles := []syscall.Handle{syscall.Handle(commands.Fd()), syscall.Handle(answers.Fd())}
	cmd.SysProcAttr = &syscall.SysProcAttr{AdditionalInheritedHandles: handles}
	cmd.Args = slices.Insert(cmd.Args, 1, "--remote-debugging-io-pipes="+
		strconv.FormatUint(uint64(handles[0]), 10)+","+strconv.FormatUint(uint64(handles[1]), 10))
}
