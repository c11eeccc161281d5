package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestCallWithArgumentsFromStandardInput(t *testing.T) {
	r := start(t, "", "one")
	r.page.SetTool("note", testkit.Tool{Run: func(_ context.Context, args json.RawMessage, _ func(map[string]any)) any {
		return map[string]any{"content": []map[string]string{{"type": "text", "text": string(args)}}}
	}})
	large := `{"a":"` + strings.Repeat("x", gateway.MaxMessageBytes) + `"}`
	for in, want := range map[string]int{"{\"a\":\n 1}": exitDone, "": exitUsage, large: exitUsage} {
		var out, errs strings.Builder
		status := pagewire(t.Context(), []string{"call", "note", "-", "--hub", r.addr}, strings.NewReader(in), &out, &errs)
		if status != want || want == exitDone && out.String() != `{"a":1}`+"\n" || errs.Len() > 300 {
			t.Errorf("%.20s: status %d, %q, %.400s", in, status, out.String(), errs.String())
		}
	}
}

// hostileNames are names for which a shell would run a command, or take an option.
var hostileNames = []string{"https://shop.example/$(touch$IFS$HOME/run)", "https://shop.example/;touch", "https://shop.example/'x",
	"https://shop.example/a&b", "https://shop.example/*"}

// Names of tools and URIs are completed from the running daemon. Without one, nothing is printed.
func TestCompletionOfNames(t *testing.T) {
	r := start(t, "", "one")
	r.page.SetTool("pay", testkit.Tool{})
	for _, uri := range hostileNames {
		r.page.Offer(uri, "x")
	}
	complete := func(words ...string) []string {
		t.Helper()
		hub := []string{"__complete", words[0], "--hub", r.addr}
		status, out, _ := run(append(hub, words[1:]...)...)
		found, ok := strings.CutSuffix(out, ":4\n") // no files
		if status != exitDone || !ok {
			t.Fatalf("%q: status %d, %q", words, status, out)
		}
		return strings.Fields(found)
	}
	for line, want := range map[string][]string{
		"call ": {"list_page_resources", "page_changes", "read_page_resource", "wait_for_page_update", "pay"}, "call pa": {"page_changes", "pay"},
		"call pay ": nil, "read ": {image, cart}, "read https://shop.example/s": {cart}, "read x ": nil, "watch x h": {image, cart},
	} {
		slices.Sort(want)
		testkit.Settles(t, line, func() string { // on a busy machine completionTime may be over first
			got := complete(strings.Split(line, " ")...)
			if slices.Equal(slices.Sorted(slices.Values(got)), want) {
				return ""
			}
			return fmt.Sprintf("it is completed to %q, want %q", got, want)
		})
	}
	r.stop()
	if got := complete("call", ""); len(got) > 0 {
		t.Errorf("without a daemon there are %q", got)
	}
}

// What a page chooses is not run by bash when a person presses the tab key, nor when the next word is completed.
func TestCompletionRunsNothingOfAPage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no bash")
	}
	bash := testkit.Must(exec.LookPath("bash"))(t)
	r := start(t, "", "one")
	for _, uri := range hostileNames {
		r.page.Offer(uri, "x")
	}
	cmd := process("command", "-c", `
		COMP_WORDBREAKS=" " ; compopt() { :; }
		source <("$0" completion bash)
		_get_comp_words_by_ref() { words=("${line[@]}"); cword=$((${#line[@]} - 1)); cur=${line[cword]}; prev=${line[cword-1]}; }
		__ltrim_colon_completions() { :; }
		cd "$1"
		line=("$0" read --hub "$2" https://shop)
		__start_pagewire; printf '%s\n' "${COMPREPLY[@]}"
		line=("$0" watch --hub "$2" "${COMPREPLY[@]}" https://shop)
		__start_pagewire; printf '%s\n' "${COMPREPLY[@]}"
		line=("$0" serve --reminders i)
		__start_pagewire; printf '%s\n' "${COMPREPLY[@]}"
		line=("$0" changes --hub "$2" --uri https://shop.example/s)
		__start_pagewire; printf '%s\n' "${COMPREPLY[@]}"
		line=("$0" call --hub "$2" p)
		__start_pagewire; printf '%s\n' "${COMPREPLY[@]}"
		ls`, process("command").Path, t.TempDir(), r.addr)
	cmd.Path = bash
	cmd.Args[0] = bash
	out, err := cmd.Output()
	both := image + "\n" + cart + "\n"
	if string(out) != both+both+"inline\n"+cart+"\npage_changes\n" || err != nil {
		t.Errorf("bash completes to %q, %v", out, err)
	}
}

// Values of flags are completed, too: words that a flag takes, and what is live. An argument too many asks no daemon.
func TestCompletionOfFlags(t *testing.T) {
	r := start(t, "", "one")
	r.g.NameProfile("", "Work")
	for line, want := range map[string]string{
		"serve --reminders ":  "off names inline",
		"serve --log-level ":  "debug info warn error",
		"serve --log-format ": "text json",
		"ls --color ":         "auto always never",
		"changes --hook ":     "claude-code codex gemini-cli copilot qwen-code",
		"changes --hub " + r.addr + " --uri https://s":    image + " " + cart,
		"changes --hub " + r.addr + " --inline ":          "https://shop.example",
		"serve --hub " + r.addr + " --shown h":            "https://shop.example",
		"serve --hub " + r.addr + " --only ":              "https://shop.example profile=Work",
		"serve --chrome a":                                "auto",
		"serve --http ":                                   "",
		"config qwen":                                     "qwen-code",
		"setup wind":                                      "windsurf",
		"read --hub " + r.addr + " " + cart + " https://": "",
	} {
		words := append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)
		testkit.Settles(t, line, func() string { // it gives up on a busy machine
			status, out, _ := run(words...)
			found, ok := strings.CutSuffix(out, ":4\n") // no files
			got := strings.Fields(found)
			if slices.Sort(got); status != exitDone || !ok || !slices.Equal(got, slices.Sorted(slices.Values(strings.Fields(want)))) {
				return fmt.Sprintf("status %d, completed to %q, want %q", status, out, want)
			}
			return ""
		})
	}
	for line, directive := range map[string]string{"serve --parts ": ":0\n", "ls --output ": ":0\n",
		"assets write ": ":16\n", "extension install --user-data-dir ": ":16\n"} {
		if _, out, _ := run(append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...); out != directive {
			t.Errorf("%q: completed to %q, want files by %q", line, out, directive)
		}
	}
}
