package main

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestFunctionsBelongToPackages(t *testing.T) {
	of := packagesBy([]string{"internal/task", "runtime", "example.com/a-b/c", "example.com/a-b/c/d"})
	for name, want := range map[string]string{
		"runtime.alloc":                        "runtime",
		"internal/task.start":                  "internal/task",
		"example.com/a-b/c.f":                  "example.com/a-b/c",
		"(*example.com/a-b/c/d.T).m$1":         "example.com/a-b/c/d",
		"(example.com/a-b/c.T).m$bound":        "example.com/a-b/c",
		"(*example.com/a-b/c.Q[*x.y/d.w]).Add": "example.com/a-b/c",
		"main.open#wasmexport":                 "main",
		"memcpy":                               "(libc)",
		"example.com/a-b/ce.not_of_c_nor_d":    "(libc)",
	} {
		if got := of(name); got != want {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
	}
}

// vector is a WebAssembly vector: how many items, and the items.
func vector(items ...[]byte) []byte {
	return slices.Concat(binary.AppendUvarint(nil, uint64(len(items))), slices.Concat(items...))
}

// sized is what has its length before it.
func sized(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }

func TestSharesOfAModule(t *testing.T) {
	name := func(i byte, s string) []byte { return append([]byte{i}, sized(s)...) }
	names := vector(name(0, "imported"), name(1, "fmt.Print"), name(2, "runtime.gc"), name(3, "runtime.park"))
	module := join([]section{
		{importSection, vector(slices.Concat(sized("gojs"), sized("f"), []byte{0, 0}))},
		{codeSection, vector(sized("print"), sized("collect"), sized("wait"))},
		{dataSection, []byte("abc")},
		{customSection, slices.Concat(sized("name"), []byte{0, 1, 0, 1}, sized(string(names)))},
	})
	shares, err := sharesOf(module, []string{"fmt", "runtime"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range shares {
		got[s.name] = string(s.code)
	}
	delete(got, "(data)")
	delete(got, "(tables)")
	if want := map[string]string{"fmt": "print", "runtime": "collectwait"}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	weighShares(shares, 1000)
	sum := 0
	for _, s := range shares {
		sum += s.brotli
	}
	if sum < 1000-len(shares) || sum > 1000 || shares[0].brotli < shares[len(shares)-1].brotli {
		t.Errorf("of 1000 bytes %d are shared out", sum)
	}
	if _, err := sharesOf(join(nil), nil); err == nil || !strings.Contains(err.Error(), "names") {
		t.Errorf("a module without names: %v", err)
	}
}
