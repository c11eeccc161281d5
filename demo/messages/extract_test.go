//go:build !js

package messages

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A message is one that Pagewire can print, with … for what is filled in, and where it is in the code.
type message struct{ text, at string }

// fromGo reads the messages of a package's sources.
func fromGo(t *testing.T, root, dir string) (found []message) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s holds no Go: %v", dir, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		constants := constantsOf(file)
		visit := func(text string, at token.Pos) {
			if text = normal(text); isMessage(text) {
				rel, _ := filepath.Rel(root, name)
				found = append(found, message{text, fmt.Sprintf("%s:%d", filepath.ToSlash(rel), set.Position(at).Line)})
			}
		}
		walk(file, constants, visit)
	}
	return found
}

// walk visits each text of a file that is printed: what code asks for at a flag or a field that is no message is left
// out with all below it.
func walk(node ast.Node, constants map[string]string, visit func(string, token.Pos)) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !silent(callee(n.Fun))
		case *ast.KeyValueExpr:
			key, is := n.Key.(*ast.Ident)
			return !is || !silentFields[key.Name]
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil
		case *ast.BinaryExpr:
			if text, is := joined(n, constants); is {
				visit(text, n.Pos())
				for _, operand := range operands(n) { // what is called for an operand may say something, too
					if _, literal := operand.(*ast.BasicLit); !literal {
						walk(operand, constants, visit)
					}
				}
				return false
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, _ := strconv.Unquote(n.Value)
				visit(text, n.Pos())
			}
		}
		return true
	})
}

func constantsOf(file *ast.File) map[string]string {
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		if literal, is := spec.Values[0].(*ast.BasicLit); is {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				text = literal.Value
			}
			found[spec.Names[0].Name] = text
		}
		return true
	})
	return found
}

func operands(n ast.Expr) []ast.Expr {
	if b, is := n.(*ast.BinaryExpr); is && b.Op == token.ADD {
		return append(operands(b.X), operands(b.Y)...)
	}
	return []ast.Expr{n}
}

// joined is the text of a sum of texts, with … for what is no literal.
func joined(n *ast.BinaryExpr, constants map[string]string) (string, bool) {
	var b strings.Builder
	texts := 0
	for _, operand := range operands(n) {
		switch operand := operand.(type) {
		case *ast.BasicLit:
			if operand.Kind != token.STRING {
				return "", false
			}
			text, _ := strconv.Unquote(operand.Value)
			b.WriteString(text)
			texts++
		case *ast.Ident:
			if text, known := constants[operand.Name]; known {
				b.WriteString(text)
			} else {
				b.WriteString("…")
			}
		default:
			b.WriteString("…")
		}
	}
	return b.String(), n.Op == token.ADD && texts > 0
}

func callee(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

var (
	verb   = regexp.MustCompile(`%[-+# 0]*[\d*]*(?:\.[\d*]+)?(?:\[\d+\])?[a-zA-Z]`)
	spaces = regexp.MustCompile(`\s+`)
	dots   = regexp.MustCompile(`…(?:\s*…)+`)
)

// normal writes a text of the code as the page has it.
func normal(text string) string {
	text = strings.ReplaceAll(text, "%%", "\x00")
	text = verb.ReplaceAllString(text, "…")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\x00", "%"), "`", "'")
	text = spaces.ReplaceAllString(text, " ")
	text = dots.ReplaceAllString(text, "…")
	// What is said before and behind is another's: a message may stand behind its subject.
	return strings.Trim(text, " ")
}

// isMessage tells sentences from names: it has three words of English at least.
func isMessage(text string) bool {
	words := 0
	for _, w := range strings.Fields(text) {
		if plainWord.MatchString(w) {
			words++
		}
	}
	return words >= 3
}

var plainWord = regexp.MustCompile(`^[("'“]*[A-Za-z][a-z’']*[.,:;?!)"'”]*$`)

// fromScripts reads the messages of the scripts below js/.
func fromScripts(t *testing.T, folders []string) (found []message) {
	t.Helper()
	cmd := exec.Command("node", append([]string{"scripts.mjs"}, folders...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node scripts.mjs: %v", err)
	}
	var raw []struct{ Text, At string }
	if err := json.Unmarshal(out, &raw); err != nil {
		t.Fatal(err)
	}
	for _, r := range raw {
		if text := normal(r.Text); isMessage(text) {
			found = append(found, message{text, r.At})
		}
	}
	return found
}

func unique(messages []message) []message {
	slices.SortStableFunc(messages, func(a, b message) int { return strings.Compare(a.text, b.text) })
	return slices.CompactFunc(messages, func(a, b message) bool { return a.text == b.text })
}
