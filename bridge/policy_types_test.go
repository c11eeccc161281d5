//go:build !js

package bridge_test

// What page code may not do with types, since TinyGo does it by reflection: 11 KB of its wasm for the first place that
// does.

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// linked are the packages that are in the wasm of a page, each behind those that it imports.
var linked = []string{"bridge/wire", "bridge/coalesce", "bridge/resource", "bridge", "bridge/view",
	"wasm/compiler", "wasm", "wasm/views"}

func TestPageCodeNeedsNoReflection(t *testing.T) {
	files := token.NewFileSet()
	c := &checked{packages: map[string]*types.Package{}, standard: importer.ForCompiler(files, "source", nil)}
	in := build.Default
	in.GOOS, in.GOARCH, in.BuildTags = "js", "wasm", []string{"tinygo"} // as TinyGo builds it
	for _, dir := range linked {
		pkg, err := in.ImportDir(filepath.Join("..", filepath.FromSlash(dir)), 0)
		if err != nil {
			t.Fatal(err)
		}
		var parsed []*ast.File
		for _, name := range pkg.GoFiles {
			if dir == "wasm" && name == "options.go" { // it calls safejs, once, which is not for the importer here
				continue
			}
			file, err := parser.ParseFile(files, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		violations, err := c.check(files, module+"/"+dir, parsed)
		if err != nil {
			t.Fatal(err)
		}
		report(t, violations)
	}
}

// The core of Views has these of the standard library, and nobody else's code. That of agents has safejs besides.
func TestTheCoreWithoutSafejsNeedsLittle(t *testing.T) {
	const needed = "cmp iter math/bits runtime slices unicode/utf8 unsafe"
	cmd := exec.Command("go", "list", "-deps", "-tags=tinygo", "./wasm/views")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.DeleteFunc(strings.Fields(string(text)), func(path string) bool {
		return internal(path) || strings.HasPrefix(path, module)
	})
	slices.Sort(paths)
	if got := strings.Join(paths, " "); got != needed {
		t.Errorf("it depends on %s; want %s", got, needed)
	}
}

// checked is what has been type-checked so far.
type checked struct {
	packages map[string]*types.Package
	standard types.Importer
}

func (c *checked) Import(path string) (*types.Package, error) {
	if p := c.packages[path]; p != nil || strings.HasPrefix(path, module) {
		return p, nil
	}
	return c.standard.Import(path)
}

// check says where a package compares or hashes what TinyGo compares and hashes by reflection.
func (c *checked) check(files *token.FileSet, path string, parsed []*ast.File) ([]string, error) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: c, Sizes: types.SizesFor("gc", "wasm")}
	pkg, err := conf.Check(path, files, parsed, info)
	if err != nil {
		return nil, err
	}
	c.packages[path] = pkg
	var violations []string
	refuse := func(at token.Pos, what string, t types.Type) {
		p := files.Position(at)
		violations = append(violations, fmt.Sprintf("%s:%d: %s %s: TinyGo does it by reflection",
			filepath.Base(p.Filename), p.Line, what, t))
	}
	for expr, tv := range info.Types {
		if m, ok := tv.Type.(*types.Map); ok && tv.IsType() && !hashes(m.Key()) {
			refuse(expr.Pos(), "a map by", m.Key())
		}
	}
	for _, file := range parsed {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				x, y := info.Types[n.X], info.Types[n.Y]
				if (n.Op == token.EQL || n.Op == token.NEQ) && !x.IsNil() && !y.IsNil() &&
					(dynamic(x.Type) || dynamic(y.Type)) {
					refuse(n.OpPos, "comparing", x.Type)
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && dynamic(info.Types[n.Tag].Type) {
					refuse(n.Switch, "a switch on", info.Types[n.Tag].Type)
				}
			}
			return true
		})
	}
	slices.Sort(violations)
	return violations, nil
}

// dynamic reports whether comparing two values of a type has to look up what they are.
func dynamic(t types.Type) bool {
	if _, ok := t.(*types.TypeParam); ok {
		return false // it is compared as what stands for it
	}
	switch u := t.Underlying().(type) {
	case *types.Interface:
		return true
	case *types.Array:
		return dynamic(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if dynamic(f.Type()) {
				return true
			}
		}
	}
	return false
}

// hashes reports whether TinyGo hashes a key as the string or the bytes that it is.
func hashes(key types.Type) bool {
	basic, ok := key.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0 || binary(key)
}

func binary(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&(types.IsInteger|types.IsBoolean) != 0
	case *types.Pointer:
		return true
	case *types.Array:
		return binary(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if !binary(f.Type()) {
				return false
			}
		}
		return true
	}
	return false
}

func TestReflectionCheckRefuses(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"func f(a error) bool { return a == nil || nil != a }", ""},
		{"func f(a, b error) bool { return a == b }", "p.go:3: comparing error"},
		{"type e string; func (e) Error() string { return \"\" }; func f(a error) bool { return a != e(\"x\") }",
			"comparing error"},
		{"type s struct { a int; b any }; func f(x, y s) bool { return x == y }", "comparing p.s"},
		{"type s struct { a int; b string }; func f(x, y s) bool { return x == y }", ""},
		{"func f(x any) { switch x { case 1: } }", "a switch on any"},
		{"func f[T comparable](a, b T) bool { return a == b }", ""},
		{"func f(x any) { switch x.(type) { case int: } }", ""},
		{"var m map[string]any", ""},
		{"var m map[*int]int", ""},
		{"type k struct { a, b uint32 }; var m map[k]int", ""},
		{"type k struct { a uint32; b string }; var m map[k]int", "a map by p.k"},
		{"var m = map[any]int{}", "a map by any"},
		{"var m map[float64]int", "a map by float64"},
	} {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, "p.go", "package p\n\n"+c.body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		violations, err := (&checked{packages: map[string]*types.Package{}}).check(files, "p", []*ast.File{file})
		got := strings.Join(violations, "\n")
		if err != nil || c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.body, got, err, c.want)
		}
	}
}
