//go:build !js

package bridge_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// A retired word stood for several things, or for a thing that its field calls otherwise. It is not part of the name of
// anything that is declared any more, nor of a file's. CONTRIBUTING.md has the words that are used.
var retired = map[string]string{
	"road":    "a transport (of a page or an agent), a notifier (of an agent), or a way",
	"roads":   "transports, or ways",
	"toolbox": "whose tools they are: agentTools, modelContextTools",
	"ground":  "Early: what the early part of the page layer hands to the late one",
	"kit":     "what is in it: kept, worker; testkit alone is a package",
}

func TestRetiredWordsStayRetired(t *testing.T) {
	seen := 0
	for dir, files := range sources(t, "..") {
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(dir), name))
			if err != nil {
				t.Fatal(err)
			}
			seen++
			report(t, checkNames(dir+"/"+name, goNames(dir+"/"+name, text)))
		}
	}
	for _, folder := range scriptFolders(t, "../js") {
		scripts, err := filepath.Glob(filepath.Join("../js", folder, "*.ts*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range scripts {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			seen++
			report(t, checkNames("js/"+folder+"/"+filepath.Base(file), scriptNames(text)))
		}
	}
	if seen == 0 {
		t.Error("no file was found: the test sees nothing")
	}
}

// checkNames says which names that a file declares, and whether its own, have a retired word in them.
func checkNames(file string, names []string) (violations []string) {
	base := strings.TrimSuffix(path.Base(file), path.Ext(file))
	for _, name := range append(names, strings.FieldsFunc(base, func(r rune) bool { return r == '_' || r == '.' })...) {
		for _, word := range wordsOf(name) {
			if instead, ok := retired[word]; ok {
				violations = append(violations, fmt.Sprintf("%s: %s: the word %q is retired; say %s", file, name, word,
					instead))
			}
		}
	}
	slices.Sort(violations)
	return slices.Compact(violations)
}

// goNames are the names that a Go file declares; none of one that cannot be parsed, which the compiler says.
func goNames(file string, text []byte) (names []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
	if err != nil {
		return nil
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names = append(names, id.Name)
			}
		case *ast.Field:
			for _, id := range n.Names {
				names = append(names, id.Name)
			}
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names = append(names, id.Name)
				}
			}
		}
		return true
	})
	return names
}

var declared = regexp.MustCompile(`\b(?:function\*?|class|interface|type|enum|const|let)\s+([A-Za-z_$][\w$]*)`)

// scriptNames are the names that a script declares, but for parameters and members.
func scriptNames(text []byte) (names []string) {
	for _, match := range declared.FindAllSubmatch(text, -1) {
		names = append(names, string(match[1]))
	}
	return names
}

// wordsOf are the words of a name in camel case, in small letters.
func wordsOf(name string) []string {
	var words []string
	begins := true
	for _, r := range name {
		if begins || unicode.IsUpper(r) {
			words = append(words, "")
		}
		begins = !unicode.IsLetter(r)
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	return words
}

func TestNameCheckRefuses(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"p/a.go", "package p\n\ntype Road int", "Road: the word \"road\" is retired"},
		{"p/a.go", "package p\n\nfunc f() { takeRoad := 1; _ = takeRoad }", "takeRoad"},
		{"p/a.go", "package p\n\nfunc f(roads []int) {}", "roads"},
		{"p/a.go", "package p\n\ntype t struct{ toolbox int }", "toolbox"},
		{"p/road_linux.go", "package p", "p/road_linux.go: road:"},
		{"p/a.go", "package p\n\nvar background, kitchen, broad, foreground int", ""},
		{"js/p/a.ts", "export interface Ground {}", "Ground"},
		{"js/p/a.ts", "const backgroundColor = 1; // the road", ""},
	} {
		names := scriptNames([]byte(c.text))
		if strings.HasSuffix(c.file, ".go") {
			names = goNames(c.file, []byte(c.text))
		}
		got := strings.Join(checkNames(c.file, names), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s with %q:\n got %q\nwant %q", c.file, c.text, got, c.want)
		}
	}
}
