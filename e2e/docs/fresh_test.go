//go:build !js && fresh

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadme follows the README in the directory in which the repository is, as somebody does who has just cloned it:
// the sh blocks with the word fresh, in their order, with a HOME where nothing is. TestBlocks has the others.
//
// make test-readme runs it; make test-fresh does so in a clone.
func TestReadme(t *testing.T) {
	home, followed := t.TempDir(), 0
	env := append(
		os.Environ(),
		"HOME="+home,
		"XDG_CONFIG_HOME="+home+"/.config",
		"PATH="+filepath.Dir(binary("pagewire"))+":"+os.Getenv("PATH"),
	)
	for _, variable := range []string{"GOPATH", "GOCACHE", "GOMODCACHE"} {
		value, err := exec.Command("go", "env", variable).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, variable+"="+strings.TrimSpace(string(value))) // what is downloaded once is enough
	}
	for _, name := range []string{"cache", "userconfig"} {
		if value, err := exec.Command("npm", "config", "get", name).Output(); err == nil {
			env = append(env, "npm_config_"+name+"="+strings.TrimSpace(string(value)))
		}
	}
	for _, b := range blocksOf("README.md", read(t, "README.md")) {
		if b.language == "sh" && b.has("fresh") {
			follow(t, b, env)
			followed++
		}
	}
	if followed == 0 {
		t.Error("the README has no sh block with the word fresh: the test sees nothing")
	}
}

// follow runs a block to its end, or until it has said what it is to say.
func follow(t *testing.T, b block, env []string) {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", b.code)
	cmd.Dir, cmd.Env = root, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	late := time.After(30 * time.Minute)
	for {
		more := out.more()
		if until := b.values["until"]; until != "" && strings.Contains(out.String(), until) {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
			<-ended
			return
		}
		select {
		case err := <-ended:
			if err != nil || b.values["until"] != "" {
				t.Errorf("%v ended (%v):\n%s\n%s", b, err, b.code, out)
			}
			return
		case <-late:
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			t.Fatalf("%v has not ended:\n%s", b, out)
		case <-more:
		}
	}
}
