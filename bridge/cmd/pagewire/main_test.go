package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// run executes one command line as a shell would.
func run(args ...string) (status int, stdout, stderr string) {
	var out, err strings.Builder
	status = pagewire(context.Background(), args, strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

func TestHelpEndsInAnExample(t *testing.T) {
	for _, args := range [][]string{
		{}, {"serve"}, {"ls"}, {"read"}, {"watch"}, {"changes"}, {"inspect"}, {"config"}, {"doctor"},
		{"extension"}, {"extension", "install"}, {"extension", "uninstall"}, {"native-host"}, {"version"},
		{"assets"}, {"assets", "list"}, {"assets", "write"},
	} {
		status, out, errs := run(append(args, "--help")...)
		if status != exitDone || errs != "" {
			t.Errorf("%v --help: status %d, stderr %q", args, status, errs)
		}
		_, example, ok := strings.Cut(out, "\nExample:\n")
		if !ok || !strings.HasPrefix(example, "  pagewire ") || strings.Contains(example, "\n\n") {
			t.Errorf("%v --help does not end in an example:\n%s", args, out)
		}
	}
}

func TestACommandOfCommandsAloneIsItsHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"assets"}} {
		_, help, _ := run(append(args, "--help")...)
		if status, out, errs := run(args...); status != exitDone || out != help || errs != "" {
			t.Errorf("%v: status %d, stderr %q, and not its help:\n%s", args, status, errs, out)
		}
	}
}

func TestWhatIsNotUnderstoodIsStatus2(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // on stderr
	}{
		{"serf", "pagewire: unknown command \"serf\": did you mean serve?\npagewire: see pagewire --help\n"},
		{"frobnicate", "pagewire: unknown command \"frobnicate\"\npagewire: see pagewire --help\n"},
		{"--quiet", "pagewire: unknown flag: --quiet\npagewire: see pagewire --help\n"},
		{"version now", "pagewire: unexpected argument \"now\"\npagewire: see pagewire version --help\n"},
		{"assets show", "pagewire: unknown command \"show\"\npagewire: see pagewire assets --help\n"},
		{"assets write", "pagewire: DIR is missing\npagewire: see pagewire assets write --help\n"},
		{"assets write a b", "pagewire: unexpected argument \"b\"\npagewire: see pagewire assets write --help\n"},
		{"assets list --force", "pagewire: unknown flag: --force\npagewire: see pagewire assets list --help\n"},
		{"ls --all", "pagewire: unknown flag: --all\npagewire: see pagewire ls --help\n"},
		{"ls x", "pagewire: unexpected argument \"x\"\npagewire: see pagewire ls --help\n"},
		{"read", "pagewire: URI is missing\npagewire: see pagewire read --help\n"},
		{"read a b", "pagewire: unexpected argument \"b\"\npagewire: see pagewire read --help\n"},
		{"read a --json --output f", "pagewire: --json and --output: choose one\npagewire: see pagewire read --help\n"},
		{"watch", "pagewire: URI is missing\npagewire: see pagewire watch --help\n"},
		{"watch a --count -1", "pagewire: --count -1: want a number of changes\npagewire: see pagewire watch --help\n"},
		{"watch --all --json --lines", "pagewire: --json and --lines: choose one\npagewire: see pagewire watch --help\n"},
		{"watch a --min-interval -1s", "pagewire: --min-interval -1s: want a time such as 30s\npagewire: see pagewire " +
			"watch --help\n"},
		{"changes now", "pagewire: unexpected argument \"now\"\npagewire: see pagewire changes --help\n"},
		{"changes --inline x", "pagewire: --inline \"x\": want an origin such as https://example.com, or " +
			"https://*.example.com\npagewire: see pagewire changes --help\n"},
		{"changes --uri x", "pagewire: --uri \"x\": want a URI as pagewire ls shows it\npagewire: see pagewire " +
			"changes --help\n"},
		{"doctor now", "pagewire: unexpected argument \"now\"\npagewire: see pagewire doctor --help\n"},
		{"config", "pagewire: CLIENT is missing\npagewire: see pagewire config --help\n"},
		{"config -- --launch", "pagewire: CLIENT is missing\npagewire: see pagewire config --help\n"},
		{"config cursor zed", "pagewire: unexpected argument \"zed\"\npagewire: see pagewire config --help\n"},
		{"help wach", "pagewire: unknown command \"wach\": did you mean watch?\npagewire: see pagewire --help\n"},
		{"help assets x", "pagewire: unknown command \"x\"\npagewire: see pagewire assets --help\n"},
		{"config codex --launch", "pagewire: --launch is a flag of serve: put it behind --, as in pagewire config CLIENT " +
			"-- --launch\npagewire: see pagewire config --help\n"},
	} {
		if status, out, errs := run(strings.Fields(c.args)...); status != exitUsage || out != "" || errs != c.want {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %d and %q", c.args, status, out, errs, exitUsage,
				c.want)
		}
	}
}

func TestHelpOfACommand(t *testing.T) {
	for asked, args := range map[string][]string{"help": {"--help"}, "help config": {"config", "--help"},
		"help assets write": {"assets", "write", "--help"}} {
		_, want, _ := run(args...)
		if status, out, errs := run(strings.Fields(asked)...); status != exitDone || out != want || errs != "" {
			t.Errorf("%s: status %d, stderr %q, and not the help of %v:\n%s", asked, status, errs, args, out)
		}
	}
}

// Every command that a person can type is in one of the groups.
func TestHelpHasEachCommand(t *testing.T) {
	_, out, _ := run("--help")
	for _, cmd := range commands().Commands() {
		if !cmd.Hidden && cmd.GroupID == "" {
			t.Errorf("%s is in no group, and so not in the help", cmd.Name())
		}
	}
	for _, want := range []string{"\nSet up:\n  config ", "\nEnvironment:\n  XDG_CONFIG_HOME ", "\nManual: https://"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{"ser": "serve", "config qw": "qwen-code"} {
		words := strings.Fields(line)
		if status, out, _ := run(append([]string{"__completeNoDesc"}, words...)...); status != exitDone ||
			!strings.HasPrefix(out, want+"\n") {
			t.Errorf("%s: status %d, completed to %q, want %s", line, status, out, want)
		}
	}
	if status, out, errs := run("completion", "bash"); status != exitDone || !strings.Contains(out, "__start_pagewire") {
		t.Errorf("completion bash: status %d, %q, stderr %q", status, out, errs)
	}
}

func TestVersionSaysWhatABugReportNeeds(t *testing.T) {
	for _, args := range []string{"version", "--version", "-v"} {
		status, out, errs := run(args)
		if status != exitDone || errs != "" {
			t.Fatalf("%s: status %d, stderr %q", args, status, errs)
		}
		for _, line := range []string{"pagewire ", "\ncommit    ", "\ntoolchain go", "\ncore      "} {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %q in\n%s", args, line, out)
			}
		}
	}
	var is struct{ Version, Commit, Toolchain, Core string }
	_, out, _ := run("version", "--json")
	if err := json.Unmarshal([]byte(out), &is); err != nil || is.Version == "" || is.Commit == "" || is.Core == "" ||
		!strings.HasPrefix(is.Toolchain, "go") {
		t.Errorf("version --json is %s (%v)", out, err)
	}
}

// The value is what `openssl dgst -sha384 -binary | base64` gives, and what browsers compare.
func TestIntegrityIsWhatBrowsersCompute(t *testing.T) {
	const want = "sha384-ywB1P0WjXou1oD1pmsZQBycsMqsO3tFjGotgWkP/W+2AhgcroefMI1i67KE0yCWn"
	if got := integrity([]byte("abc")); got != want {
		t.Errorf("integrity of abc = %s, want %s", got, want)
	}
}
