//go:build !js

package bridge_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// starters are the functions and types that start a program, by the package that has them.
var starters = map[string][]string{
	"os/exec": {"Command", "CommandContext", "Cmd"},
	"os":      {"StartProcess"},
	"syscall": {"StartProcess", "ForkExec", "Exec"},
}

// isOfTests reports whether a file runs in tests alone.
func isOfTests(dir, name string) bool {
	return dir != "bridge/testkit/testcmd" && (strings.HasSuffix(name, "_test.go") ||
		strings.HasPrefix(dir+"/", "bridge/testkit/") || strings.HasPrefix(dir+"/", "e2e/"))
}

// Tests start programs by testkit/testcmd alone. A program that is started otherwise may hang its
// test for good.
func TestProgramsOfTestsEnd(t *testing.T) {
	seen := 0
	for dir, files := range sources(t, "..") {
		for _, name := range files {
			if isOfTests(dir, name) {
				text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(dir), name))
				if err != nil {
					t.Fatal(err)
				}
				report(t, checkStarts(dir+"/"+name, text))
				seen++
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d files of tests were found", seen)
	}
	starts := regexp.MustCompile(`(?s)["'](node:)?child_process["'].*`)
	here, _ := filepath.Glob("../js/test/*.mjs") // these patterns have no error
	below, _ := filepath.Glob("../js/test/*/*.mjs")
	scripts := slices.Concat(here, below)
	if len(here) == 0 || len(below) == 0 {
		t.Errorf("only %q are found", scripts)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if code := starts.Find(text); code != nil && !strings.Contains(string(code), "timeout: ") {
			t.Errorf("%s starts programs without a timeout", script)
		}
	}
}

// checkStarts returns what starts a program in a file of tests.
func checkStarts(name string, text []byte) (violations []string) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	refuse := func(at token.Pos, what string) {
		violations = append(violations, fmt.Sprintf("%s:%d: %s: tests start programs by testcmd.Command, so that none "+
			"hangs a test or is left behind", name, files.Position(at).Line, what))
	}
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		as := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			as = spec.Name.Name
		}
		if starters[path] != nil && as == "." {
			refuse(spec.Pos(), "import . "+path)
		}
		imports[as] = path
	}
	types := map[ast.Expr]bool{} // exec.Cmd as a type, whose values others have made
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			types[n.X] = true
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && slices.Contains(starters[imports[x.Name]], n.Sel.Name) && !types[n] {
				refuse(n.Pos(), x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return violations
}

func TestStartCheckRefuses(t *testing.T) {
	const none = ""
	for code, want := range map[string]string{
		`import "os/exec"; var _ = exec.Command("x")`:                        "p:1: exec.Command",
		`import e "os/exec"; var _ = e.CommandContext(nil, "x")`:             "p:1: e.CommandContext",
		`import . "os/exec"; var _ = Command("x")`:                           "p:1: import . os/exec",
		`import "os/exec"; var _ = exec.Cmd{Path: "x"}`:                      "p:1: exec.Cmd",
		`import "os/exec"; var _ = new(exec.Cmd)`:                            "p:1: exec.Cmd",
		`import "os/exec"; var start = exec.Command`:                         "p:1: exec.Command",
		`import "os"; var _, _ = os.StartProcess("x", nil, nil)`:             "p:1: os.StartProcess",
		`import "syscall"; var _, _ = syscall.ForkExec("x", nil, nil)`:       "p:1: syscall.ForkExec",
		`import "os/exec"; func f(cmd *exec.Cmd, list []*exec.Cmd) {}`:       none,
		`import "os/exec"; var _, _ = exec.LookPath("x")`:                    none,
		`import "example.com/exec"; var _ = exec.Command("x")`:               none,
		`import "pagewire/testkit/testcmd"; var _ = testcmd.Command("node")`: none,
	} {
		got := strings.Join(checkStarts("p", []byte("package p; "+code)), "\n")
		if want == none && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
