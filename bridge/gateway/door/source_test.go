package door_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// matches lists the other code that compares an origin with patterns, and what it decides by that. None of it decides
// what an agent gets of a page.
var matches = map[string]string{
	"access/access.go":        "which pages may send requests to the ports",
	"pages/socket/desktop.go": "which pages may connect by themselves",
	"node/tickets/tickets.go": "whose pages a ticket's issuer speaks for",
	"internal/parts/parts.go": "which rules of the user's file are for a page",
	"gateway/calls/prompt.go": "which contents a hook's user chose, of what its agent sees",
}

// Outside of this package nothing asks a Scope, makes a Route, or asks a page for contents without one.
func TestOnlyTheDoorPermits(t *testing.T) {
	found := map[string]bool{}
	calls, scopes := 0, 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		if err != nil {
			return err
		}
		if name == "gateway/door" {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		wrong := func(at ast.Node, what string) { t.Errorf("%s: %s", files.Position(at.Pos()), what) }
		passedOn := map[ast.Expr]bool{} // values of members of composite literals, and what is set
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					passedOn[e] = true
				}
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if m, ok := e.(*ast.KeyValueExpr); ok {
						passedOn[m.Value] = true
					}
				}
				switch of := source(n.Type); {
				case strings.HasPrefix(of, "door.Scope"):
					scopes++
				case strings.HasPrefix(of, "door."), of == "route", of == "pass":
					wrong(n, "makes a "+of)
				}
			case *ast.SelectorExpr:
				switch x := source(n.X); {
				case x == "weborigin" && n.Sel.Name == "Match":
					if found[name] = true; matches[name] == "" {
						wrong(n, "compares an origin with patterns")
					}
				case (n.Sel.Name == "Only" || n.Sel.Name == "Deny") && !passedOn[n]:
					wrong(n, "asks "+x+"."+n.Sel.Name)
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || filepath.Dir(name) != "gateway" {
					return true
				}
				// Page.read and Page.callTool; the methods of a way have other parameters, and are the page's own.
				if m := f.Sel.Name; m == "read" && len(n.Args) == 4 || m == "callTool" && len(n.Args) == 5 {
					calls++
					if of := source(f.X); !strings.HasSuffix(of, ".Page()") && !slices.Contains([]string{"l", "p.link"}, of) &&
						name != "gateway/ways.go" {
						wrong(n, "asks a page without a route")
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range matches {
		if !found[name] {
			t.Errorf("%s does not decide any more %s", name, why)
		}
	}
	if calls < 4 || scopes < 3 {
		t.Errorf("%d calls of pages and %d scopes are found: the test looks at the wrong code", calls, scopes)
	}
}

// source is the source of a chain of names and calls without arguments.
func source(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return source(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		return source(e.Fun) + "()"
	case *ast.IndexExpr:
		return source(e.X)
	case *ast.UnaryExpr:
		return source(e.X)
	}
	return ""
}
