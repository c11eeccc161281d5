// Command attacks runs each test that SECURITY.md names and no other, and prints a table of attack,
// route and verdict. It fails if a test failed or did not run.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// routes are the ways of an attacker, by a prefix of the test's directory. The longest prefix
// counts.
var routes = map[string]string{
	"bridge": "an agent's messages, any port", "bridge/link": "the link's frames",
	"bridge/gateway": "a page, or an agent, at the gateway",
	"bridge/access":  "HTTP", "bridge/agents": "an agent by stdio or HTTP",
	"bridge/desktop/browser": "a launched browser",
	"bridge/desktop/daemon":  "the daemon's socket", "bridge/node": "a node, its bus or its doors",
	"bridge/node/webhook": "a webhook's target", "bridge/desktop/inspect": "the inspector's feed",
	"bridge/internal": "a connection", "bridge/gateway/live": "text for a model",
	"bridge/pages/cdp":       "a page by CDP",
	"bridge/pages/extension": "the extension's native host",
	"bridge/pages/socket":    "a page by WebSocket",
	"bridge/desktop/serve":   "another process or user", "bridge/gateway/tools": "a page's tools",
	"bridge/cmd": "the command line",
	"e2e":        "a browser, or a whole gateway",
}

// A claim is a test that SECURITY.md names, and SECURITY.md's words for the attack.
type claim struct{ test, attack string }

var named = regexp.MustCompile("`(Test\\w+)`")

// claims reads SECURITY.md. The attack is a table row's first cell, or in prose the sentence before
// the name.
func claims(text string) (list []claim) {
	for block := range strings.SplitSeq(text, "\n\n") {
		for part := range strings.SplitSeq(strings.ReplaceAll(block, "\n|", "\x00|"), "\x00") {
			part = strings.Join(strings.Fields(part), " ")
			for _, at := range named.FindAllStringSubmatchIndex(part, -1) {
				attack := part[:at[0]]
				if strings.HasPrefix(part, "|") {
					attack = strings.Split(part, " | ")[0]
				} else if i := strings.LastIndex(attack, ". "); i >= 0 {
					attack = attack[i+1:]
				}
				attack, _, _ = strings.Cut(attack, " (`")
				list = append(list, claim{part[at[2]:at[3]], strings.Trim(attack, "|*. (`")})
			}
		}
	}
	return list
}

var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// places returns the directories of each test that needs no other browser. make test-engines runs
// the other tests.
func places() (map[string][]string, error) {
	dirs := map[string][]string{}
	return dirs, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		code, err := os.ReadFile(name)
		if bytes.HasPrefix(code, []byte("//go:build engines")) {
			return err
		}
		for _, m := range declared.FindAllSubmatch(code, -1) {
			dirs[string(m[1])] = append(dirs[string(m[1])], path.Dir(filepath.ToSlash(name)))
		}
		return err
	})
}

// run runs tests of a directory. Its verdicts are the results of each test or subtest that has no
// subtests.
func run(dir string, tests []string) (verdicts map[string][]string, err error) {
	cmd := testcmd.CommandContext(context.Background(), "go", "test", "-json", "-count=1",
		"-timeout=60m", "-tags=attacks", "-run=^("+strings.Join(tests, "|")+")$",
		"./"+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	results, parents, said := map[string]string{}, map[string]bool{}, map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e); e.Test == "" {
			continue
		}
		said[e.Test] += e.Output
		if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
			results[e.Test] = e.Action
			parents[path.Dir(e.Test)] = true
		}
		if e.Action == "fail" || strings.Contains(e.Output, "reads p50") {
			fmt.Fprint(os.Stderr, said[e.Test])
		}
	}
	verdicts = map[string][]string{}
	for test, result := range results {
		if !parents[test] {
			top, _, _ := strings.Cut(test, "/")
			verdicts[top] = append(verdicts[top], result)
		}
	}
	return verdicts, err
}

func main() {
	text, err := os.ReadFile("SECURITY.md")
	dirs, walkErr := places()
	if err = cmp.Or(err, walkErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	list := claims(string(text))
	of := map[string][]string{}
	for _, c := range list {
		for _, dir := range dirs[c.test] {
			if !slices.Contains(of[dir], c.test) {
				of[dir] = append(of[dir], c.test)
			}
		}
	}
	cases, bad, told := 0, 0, map[string]bool{}
	fmt.Println("| attack | route | test | cases | verdict |\n|---|---|---|---|---|")
	verdicts := map[string]map[string][]string{}
	for _, dir := range slices.Sorted(maps.Keys(of)) {
		if verdicts[dir], err = run(dir, of[dir]); err != nil {
			bad++
		}
	}
	for _, c := range list {
		for _, dir := range dirs[c.test] {
			if told[dir+c.test] {
				continue
			}
			told[dir+c.test] = true
			results := verdicts[dir][c.test]
			verdict := "stopped"
			if i := slices.IndexFunc(results, func(r string) bool { return r != "pass" }); i >= 0 {
				verdict = results[i]
			} else if len(results) == 0 {
				verdict = "not run"
				bad++
			}
			cases += len(results)
			route := dir
			for routes[route] == "" && route != "." {
				route = path.Dir(route)
			}
			fmt.Printf("| %s | %s | %s | %d | %s |\n", c.attack, routes[route], c.test,
				len(results), verdict)
		}
	}
	fmt.Printf("\n%d attacks, %d cases, %d bad\n", len(told), cases, bad)
	if bad > 0 {
		os.Exit(1)
	}
}
